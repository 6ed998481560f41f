// The elementwise kernel over dense rows, its grid, and the vectors that its threads load and
// store.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/common/cells.cuh"
#include "samebits/core/config.hpp"

namespace samebits::cuda {

/// A vector of E codes of Bits bits each, in 32-bit words. Code i is in the bits from i * Bits
/// upward.
template <int Bits, int E>
struct packed {
  static constexpr int words = Bits * E / 32;
  static_assert(words * 32 == Bits * E, "a pack is whole words");
  std::uint32_t w[words];

  __device__ __forceinline__ std::uint32_t code(int i) const {
    if constexpr (Bits == 32) {
      return w[i];
    } else {
      return (w[i * Bits / 32] >> (i * Bits % 32)) & ((1u << (Bits % 32)) - 1);
    }
  }
  /// Sets code i. The vector must start as zeros, and each code may be set once.
  __device__ __forceinline__ void set(int i, std::uint32_t code) {
    w[i * Bits / 32] |= code << (i * Bits % 32);
  }

  /// p must be aligned to min(16, size of the vector) bytes.
  __device__ __forceinline__ static packed load(const void* p) {
    return loaded([p](int i) { return static_cast<const part*>(p)[i]; });
  }
  __device__ __forceinline__ void store(void* p) const {
    each_part([p](int i, const part& x) { static_cast<part*>(p)[i] = x; });
  }
  /// The same of codes that are used once: they leave the cache to others.
  __device__ __forceinline__ static packed load_once(const void* p) {
    return loaded([p](int i) { return __ldcs(static_cast<const part*>(p) + i); });
  }
  __device__ __forceinline__ void store_once(void* p) const {
    each_part([p](int i, const part& x) { __stcs(static_cast<part*>(p) + i, x); });
  }

 private:
  /// What one instruction loads or stores.
  using part = std::conditional_t<words % 4 == 0, uint4,
                                  std::conditional_t<words == 2, uint2, std::uint32_t>>;
  static constexpr int parts = words * 4 / static_cast<int>(sizeof(part));
  static_assert(words % 4 == 0 || words <= 2);

  template <class Load>
  __device__ __forceinline__ static packed loaded(const Load& load) {
    part read[parts];
#pragma unroll
    for (int i = 0; i < parts; ++i) read[i] = load(i);
    packed x;
    memcpy(x.w, read, sizeof read);
    return x;
  }
  template <class Store>
  __device__ __forceinline__ void each_part(const Store& store) const {
    part written[parts];
    memcpy(written, w, sizeof written);
#pragma unroll
    for (int i = 0; i < parts; ++i) store(i, written[i]);
  }
};

/// dense_rows: the parameters of an elementwise kernel whose input and output rows are contiguous.
struct dense_rows {
  cells in, out;
  std::uint64_t rows;
  std::uint64_t cols;
  std::uint64_t index;  ///< random index of the first element (contract §3)
  std::uint64_t pitch;  ///< random indices from one row to the next
};

/// Threads of a block.
inline constexpr int block_threads = 256;

/// Order in which a thread processes its vectors.
enum class pace {
  at_once,    ///< loads all vectors, then converts: for conversions of few instructions
  one_ahead,  ///< loads the next vector while it converts one: for long conversions
};

/// Applies Op to every element. One block per row segment of block_threads * Op::packs vectors.
///
/// Neighbouring threads read neighbouring vectors. The elements after a row's last whole vector are
/// converted one by one. Inputs: dense rows, aligned for packed::load() and packed::store().
///
/// Op has in_bits, out_bits, pack (elements of a vector), packs (vectors of a thread), order,
/// apply(vector, index) and one(in, out, index) on pointers to codes.
template <class Op>
__global__ void __launch_bounds__(block_threads) dense_kernel(const Op op, const dense_rows d) {
  constexpr int pack = Op::pack;
  constexpr int packs = Op::packs;
  constexpr int in_bytes = Op::in_bits / 8;
  constexpr int out_bytes = Op::out_bits / 8;
  using in_pack = packed<Op::in_bits, pack>;
  const std::uint64_t whole = d.cols / pack;
  const std::uint64_t tile = (std::uint64_t{blockIdx.x} * packs) * block_threads + threadIdx.x;
  for (std::uint64_t row = blockIdx.y; row < d.rows; row += gridDim.y) {
    const std::byte* const in = d.in.at(row, 0);
    std::byte* const out = d.out.at(row, 0);
    const std::uint64_t index = d.index + row * d.pitch;
    const auto load = [&](std::uint64_t at) { return in_pack::load(in + at * (pack * in_bytes)); };
    const auto convert = [&](const in_pack& x, std::uint64_t at) {
      op.apply(x, index + at * pack).store(out + at * (pack * out_bytes));
    };
    const bool full = tile + (packs - 1) * block_threads < whole;
    if (full && Op::order == pace::at_once) {
      in_pack x[packs];
#pragma unroll
      for (int p = 0; p < packs; ++p) x[p] = load(tile + p * block_threads);
#pragma unroll
      for (int p = 0; p < packs; ++p) convert(x[p], tile + p * block_threads);
    } else if (full) {
      in_pack x = load(tile);
#pragma unroll 1
      for (int p = 0; p < packs; ++p) {
        const std::uint64_t at = tile + p * block_threads;
        in_pack next = x;
        if (p + 1 < packs) next = load(at + block_threads);
        convert(x, at);
        x = next;
      }
    } else {
#pragma unroll 1
      for (int p = 0; p < packs; ++p) {
        const std::uint64_t at = tile + p * block_threads;
        if (at < whole) {
          convert(load(at), at);
        } else if (at == whole) {
          for (std::uint64_t c = whole * pack; c < d.cols; ++c) {
            op.one(in + c * in_bytes, out + c * out_bytes, index + c);
          }
        }
      }
    }
  }
}

/// Grid of dense_kernel and words_kernel, for threads of `packs` vectors of `pack` elements. A row's
/// last, incomplete vector counts as a vector.
inline dim3 row_grid(std::uint64_t rows, std::uint64_t cols, std::uint64_t pack,
                     std::uint64_t packs) {
  const std::uint64_t tile = block_threads * packs;
  const std::uint64_t vectors = cols / pack + (cols % pack != 0 ? 1 : 0);
  return dim3(static_cast<unsigned>((vectors + tile - 1) / tile),
              static_cast<unsigned>(rows < 65535 ? rows : 65535));
}

}  // namespace samebits::cuda
