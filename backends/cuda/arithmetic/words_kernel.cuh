// Elementwise kernel that loads 16 bytes of each operand at a time, and its launch parameters.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/dispatch/calls/array_arithmetic.hpp"

namespace samebits::cuda {

/// An operand: rows of contiguous codes, or one code repeated along the row.
struct word_rows : cells {
  bool repeated;
};

/// Launch parameters of words_kernel; rows and out are aligned to 16 bytes.
struct word_task {
  word_rows in[backends::max_operands];
  cells out;
  std::uint64_t rows, cols;
};

/// Vectors of 16 bytes that a thread loads from each array; all are loaded before any result is
/// stored.
inline constexpr int word_packs = 2;

/// A word in which one code of Width bytes is repeated.
template <int Width>
__device__ __forceinline__ std::uint32_t repeated_code(const std::byte* p) {
  const auto code = static_cast<std::uint32_t>(load_code(p, Width));
  return code * (Width == 1 ? 0x01010101u : Width == 2 ? 0x00010001u : 1u);
}

/// Applies Step to every element. One block per row segment of block_threads * word_packs vectors.
///
/// Neighbouring threads read neighbouring vectors. The codes after a row's last whole vector are
/// computed one by one.
///
/// Step has width (bytes of a code), operands, and of(a, b, c) on words of codes.
template <class Step>
__global__ void __launch_bounds__(block_threads) words_kernel(const word_task t) {
  constexpr int operands = Step::operands;
  constexpr int width = Step::width;
  constexpr int pack = 16 / width;
  struct operand_packs {
    uint4 of[operands];
  };
  const std::uint64_t whole = t.cols / pack;
  const std::uint64_t first =
      std::uint64_t{blockIdx.x} * (word_packs * block_threads) + threadIdx.x;
  for (std::uint64_t row = blockIdx.y; row < t.rows; row += gridDim.y) {
    const auto load = [&](std::uint64_t at) {
      operand_packs x;
#pragma unroll
      for (int k = 0; k < operands; ++k) {
        const std::byte* const data = t.in[k].data + row * t.in[k].row_bytes;
        if (t.in[k].repeated) {
          const std::uint32_t word = repeated_code<width>(data);
          x.of[k] = make_uint4(word, word, word, word);
        } else {
          x.of[k] = reinterpret_cast<const uint4*>(data)[at];
        }
      }
      return x;
    };
    std::byte* const out = t.out.data + row * t.out.row_bytes;
    const auto compute = [&](const operand_packs& x, std::uint64_t at) {
      const uint4& a = x.of[0];
      const uint4& b = x.of[operands > 1 ? 1 : 0];
      const uint4& c = x.of[operands > 2 ? 2 : 0];
      reinterpret_cast<uint4*>(out)[at] =
          make_uint4(Step::of(a.x, b.x, c.x), Step::of(a.y, b.y, c.y), Step::of(a.z, b.z, c.z),
                     Step::of(a.w, b.w, c.w));
    };
    if (first + (word_packs - 1) * block_threads < whole) {
      operand_packs x[word_packs];
#pragma unroll
      for (int p = 0; p < word_packs; ++p) x[p] = load(first + p * block_threads);
#pragma unroll
      for (int p = 0; p < word_packs; ++p) compute(x[p], first + p * block_threads);
    } else {
#pragma unroll 1
      for (int p = 0; p < word_packs; ++p) {
        const std::uint64_t at = first + p * block_threads;
        if (at < whole) {
          compute(load(at), at);
        } else if (at == whole) {
#pragma unroll 1
          for (std::uint64_t col = whole * pack; col < t.cols; ++col) {
            std::uint32_t x[backends::max_operands] = {};
#pragma unroll
            for (int k = 0; k < operands; ++k) {
              const std::uint64_t offset =
                  row * t.in[k].row_bytes + (t.in[k].repeated ? 0 : col * width);
              x[k] = static_cast<std::uint32_t>(load_code(t.in[k].data + offset, width));
            }
            store_code(out + col * width, width, Step::of(x[0], x[1], x[2]));
          }
        }
      }
    }
  }
}

/// Launches words_kernel.
template <class Step>
void launch_words(const word_task& t, cudaStream_t stream) {
  launch_kernel("cuda-native: compute", words_kernel<Step>,
                row_grid(t.rows, t.cols, 16 / Step::width, word_packs), block_threads, 0, stream,
                t);
}

}  // namespace samebits::cuda
