// Casting lists of tensors: a block converts a chunk, by packs of codes where both sides allow it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/tensor_list/plan_launch.cuh"
#include "numerics/tensor_list/plan.hpp"

namespace samebits::cuda {

/// Threads of a block. They take a chunk's packs at once, and a block that is done makes room for
/// the next: of fp32 to bf16 1.02 of copy on an H200, where warps that take chunk after chunk come
/// to 0.97 at best.
inline constexpr int cast_threads = 128;
/// Blocks per processor that kernels of many formats must leave registers for.
inline constexpr int cast_residents = 8;

/// Both lists, and where the random index of an element comes from: offset + row * pitch + column
/// (contract §3).
struct cast_lists {
  numerics::plan_tables from, to;
  std::uint64_t offset;
  std::uint64_t pitch;
  bool pitch_is_columns;  ///< of each tensor, instead of `pitch`
};

/// A chunk on both sides.
struct cast_chunk {
  numerics::plan_row from, to;
  numerics::plan_chunk place;

  /// The one of this block.
  __device__ __forceinline__ static cast_chunk of_block(const cast_lists& lists) {
    const std::uint64_t chunk = blockIdx.x;
    const std::uint32_t tensor = lists.to.row_of_chunk[chunk];
    const numerics::plan_row to = lists.to.rows[tensor];
    return {lists.from.rows[tensor], to, numerics::chunk_of(to, tensor, chunk)};
  }

  /// Whether indices go on by one from each element to the next.
  __device__ __forceinline__ bool is_one_row(const cast_lists& lists) const {
    const auto cols = static_cast<std::uint64_t>(to.cols);
    return lists.pitch_is_columns || lists.pitch == cols || to.count <= to.cols;
  }
  /// Of element i of the chunk.
  __device__ __forceinline__ std::uint64_t index(const cast_lists& lists, std::int64_t i) const {
    const std::int64_t at = place.first + i;
    if (is_one_row(lists)) return lists.offset + static_cast<std::uint64_t>(at);
    return lists.offset + static_cast<std::uint64_t>(at / to.cols) * lists.pitch +
           static_cast<std::uint64_t>(at % to.cols);
  }
};

template <class Op>
inline constexpr bool is_general = false;
template <int InBits, int OutBits>
inline constexpr bool is_general<general_op<InBits, OutBits>> = true;

/// Packs, then what is left of the last one.
template <class Op>
__device__ __forceinline__ void cast_packs(const Op& op, std::uint32_t tensor, const std::byte* in,
                                           std::byte* out, int count, std::uint64_t index) {
  using in_pack = packed<Op::in_bits, Op::pack>;
  constexpr int in_bytes = Op::in_bits / 8, out_bytes = Op::out_bits / 8;
  constexpr int turns = static_cast<int>(numerics::chunk_elements) / (Op::pack * cast_threads);
  // Conversions of few instructions load all they convert at once; formats that are no constants
  // take registers.
  constexpr int most = Op::order == pace::at_once ? 8 : is_general<Op> ? 1 : 2;
  constexpr int group = turns > most ? most : turns > 0 ? turns : 1;
  const auto load = [&](int at) { return in_pack::load(in + at * (Op::pack * in_bytes)); };
  const auto convert = [&](const in_pack& x, int at) {
    op.apply(x, index + static_cast<std::uint64_t>(at * Op::pack), tensor)
        .store(out + at * (Op::pack * out_bytes));
  };
  const int whole = count / Op::pack;
  int at = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (; at + (group - 1) * cast_threads < whole; at += group * cast_threads) {
    in_pack x[group];
#pragma unroll
    for (int k = 0; k < group; ++k) x[k] = load(at + k * cast_threads);
#pragma unroll
    for (int k = 0; k < group; ++k) convert(x[k], at + k * cast_threads);
  }
#pragma unroll 1
  for (; at < whole; at += cast_threads) convert(load(at), at);
#pragma unroll 1
  for (int i = whole * Op::pack + static_cast<int>(threadIdx.x); i < count; i += cast_threads) {
    op.one(in + i * in_bytes, out + i * out_bytes, index + static_cast<std::uint64_t>(i), tensor);
  }
}

/// Any chunk of the op's widths. Not a call of its own: what it is given by reference would be
/// stored in memory by every thread, 0.6 of copy instead of 1.0.
template <class Op>
__device__ __forceinline__ void cast_each(const Op& op, const cast_lists& lists,
                                          const cast_chunk& chunk) {
  using in_code = typename samebits::detail::storage_of<Op::in_bits>::type;
  using out_code = typename samebits::detail::storage_of<Op::out_bits>::type;
#pragma unroll 1
  for (std::int64_t i = threadIdx.x; i < chunk.place.count; i += cast_threads) {
    const std::int64_t at = chunk.place.first + i;
    const std::byte* const in = static_cast<const std::byte*>(chunk.from.data) +
                                numerics::offset_of(chunk.from, at) * (Op::in_bits / 8);
    std::byte* const out = static_cast<std::byte*>(chunk.to.data) +
                           numerics::offset_of(chunk.to, at) * (Op::out_bits / 8);
    const auto code = static_cast<in_code>(load_code(in, Op::in_bits / 8));
    out_code result;
    op.one(reinterpret_cast<const std::byte*>(&code), reinterpret_cast<std::byte*>(&result),
           chunk.index(lists, i), chunk.place.tensor);
    store_code(out, Op::out_bits / 8, result);
  }
}

/// A chunk of the op's formats or widths.
template <class Op>
__device__ __forceinline__ void cast_by(const Op& op, const cast_lists& lists,
                                        const cast_chunk& c) {
  const std::uint64_t index = c.index(lists, 0);
  if (!is_regular(c.from) || !is_regular(c.to) || !c.is_one_row(lists) ||
      index % Op::index_multiple != 0) {
    return cast_each(op, lists, c);
  }
  cast_packs(op, c.place.tensor,
             static_cast<const std::byte*>(c.from.data) + c.place.first * (Op::in_bits / 8),
             static_cast<std::byte*>(c.to.data) + c.place.first * (Op::out_bits / 8),
             static_cast<int>(c.place.count), index);
}

/// Lists whose tensors are all of the op's formats or widths.
template <class Op>
__global__ void __launch_bounds__(cast_threads, is_general<Op> ? cast_residents : 1)
    cast_alike_kernel(const __grid_constant__ Op op, const __grid_constant__ cast_lists lists) {
  cast_by(op, lists, cast_chunk::of_block(lists));
}

/// A block for each chunk; there is at least one. More than a grid has blocks, 2^31 - 1, would be
/// 8 terabytes of elements, or tables of 256 gigabytes.
template <class Kernel, class... Arguments>
void launch_cast(Kernel kernel, const cast_lists& lists, cudaStream_t stream,
                 const Arguments&... arguments) {
  const auto blocks = static_cast<unsigned>(lists.to.chunks);
  launch_kernel("cast kernel", kernel, blocks, cast_threads, 0, stream, arguments..., lists);
}

/// The formats of every pair of tensors.
struct format_pair {
  format_id from, to;
};

/// Whether hardware instructions have the rule's results, for all formats of a plan.
bool has_native_cast(const cast_rule& rule);
/// By them. `alike`: where all tensors are of one pair.
void launch_native_cast(const cast_lists& lists, std::optional<format_pair> alike,
                        overflow on_overflow, cudaStream_t stream);

}  // namespace samebits::cuda
