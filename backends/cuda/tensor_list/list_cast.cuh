// Converts a list of tensors to another list. One block per chunk of up to 4096 elements.
//
// A chunk that is dense and 16-byte aligned on both sides is converted by vectors, any other chunk
// element by element.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/convert/convert_select.cuh"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "numerics/tensor_list/list.hpp"

namespace samebits::cuda {

/// Threads of a block. A block converts one chunk, and a finished block makes room for the next
/// one: fp32 to bf16 takes 102 % of the bandwidth of a device-to-device copy of the same bytes on an
/// H200. Warps that work on chunk after chunk reach 97 % at best.
inline constexpr int cast_threads = 128;
/// Minimum resident blocks per multiprocessor of kernels for many formats.
inline constexpr int cast_residents = 8;

/// cast_lists: launch parameters. Both lists, and the random indices of elements: offset + row *
/// pitch + column (contract §3).
struct cast_lists {
  numerics::tensor_tables from, to;
  std::uint64_t offset;
  std::uint64_t pitch;
  bool pitch_is_columns;  ///< the pitch is each tensor's cols, not `pitch`
};

/// A chunk of the input and output tensor.
struct cast_chunk {
  numerics::list_row from, to;
  numerics::list_chunk range;

  /// The chunk of this block.
  __device__ __forceinline__ static cast_chunk of_block(const cast_lists& lists) {
    const std::uint64_t chunk = blockIdx.x;
    const std::uint32_t tensor = lists.to.row_of_chunk[chunk];
    const numerics::list_row to = lists.to.rows[tensor];
    return {lists.from.rows[tensor], to, numerics::chunk_of(to, tensor, chunk)};
  }

  /// Whether the random index grows by one from each element to the next.
  __device__ __forceinline__ bool is_one_row(const cast_lists& lists) const {
    const auto cols = static_cast<std::uint64_t>(to.cols);
    return lists.pitch_is_columns || lists.pitch == cols || to.count <= to.cols;
  }
  /// Random index of element i of the chunk.
  __device__ __forceinline__ std::uint64_t index(const cast_lists& lists, std::int64_t i) const {
    const std::int64_t at = range.first + i;
    if (is_one_row(lists)) return lists.offset + static_cast<std::uint64_t>(at);
    return lists.offset + static_cast<std::uint64_t>(at / to.cols) * lists.pitch +
           static_cast<std::uint64_t>(at % to.cols);
  }
};

/// Whether Op converts between formats that are not compile-time constants.
template <class Op>
inline constexpr bool is_general = false;
template <int InBits, int OutBits>
inline constexpr bool is_general<general_op<InBits, OutBits>> = true;

/// Converts a dense chunk: whole vectors, then the elements after the last whole vector.
template <class Op>
__device__ __forceinline__ void cast_packs(const Op& op, std::uint32_t tensor, const std::byte* in,
                                           std::byte* out, int count, std::uint64_t index) {
  using in_pack = packed<Op::in_bits, Op::pack>;
  constexpr int in_bytes = Op::in_bits / 8, out_bytes = Op::out_bits / 8;
  constexpr int turns = static_cast<int>(numerics::chunk_elements) / (Op::pack * cast_threads);
  // Vectors loaded before the first is converted: 8 for conversions of few instructions, 1 for
  // formats that are not constants, which take registers, and 2 for all others.
  constexpr int maximum = Op::order == pace::at_once ? 8 : is_general<Op> ? 1 : 2;
  constexpr int group = turns > maximum ? maximum : turns > 0 ? turns : 1;
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

/// Converts a chunk of any strides and alignment, element by element. Inlined: otherwise every
/// thread stores the arguments it passes by reference in memory, and the bandwidth falls from 100
/// to 60 % of a device-to-device copy.
template <class Op>
__device__ __forceinline__ void cast_each(const Op& op, const cast_lists& lists,
                                          const cast_chunk& chunk) {
  using in_code = typename samebits::detail::storage_of<Op::in_bits>::type;
  using out_code = typename samebits::detail::storage_of<Op::out_bits>::type;
#pragma unroll 1
  for (std::int64_t i = threadIdx.x; i < chunk.range.count; i += cast_threads) {
    const std::int64_t at = chunk.range.first + i;
    const std::byte* const in = static_cast<const std::byte*>(chunk.from.data) +
                                numerics::offset_of(chunk.from, at) * (Op::in_bits / 8);
    std::byte* const out = static_cast<std::byte*>(chunk.to.data) +
                           numerics::offset_of(chunk.to, at) * (Op::out_bits / 8);
    const auto code = static_cast<in_code>(load_code(in, Op::in_bits / 8));
    out_code result;
    op.one(reinterpret_cast<const std::byte*>(&code), reinterpret_cast<std::byte*>(&result),
           chunk.index(lists, i), chunk.range.tensor);
    store_code(out, Op::out_bits / 8, result);
  }
}

/// Converts a chunk by vectors if both sides and the random indices allow it, else element by
/// element.
template <class Op>
__device__ __forceinline__ void cast_by(const Op& op, const cast_lists& lists,
                                        const cast_chunk& c) {
  const std::uint64_t index = c.index(lists, 0);
  if (!is_dense_aligned(c.from) || !is_dense_aligned(c.to) || !c.is_one_row(lists) ||
      index % Op::index_multiple != 0) {
    return cast_each(op, lists, c);
  }
  cast_packs(op, c.range.tensor,
             static_cast<const std::byte*>(c.from.data) + c.range.first * (Op::in_bits / 8),
             static_cast<std::byte*>(c.to.data) + c.range.first * (Op::out_bits / 8),
             static_cast<int>(c.range.count), index);
}

/// Converts lists in which every pair of tensors has the op's formats or widths. One block per
/// chunk.
template <class Op>
__global__ void __launch_bounds__(cast_threads, is_general<Op> ? cast_residents : 1)
    cast_alike_kernel(const __grid_constant__ Op op, const __grid_constant__ cast_lists lists) {
  cast_by(op, lists, cast_chunk::of_block(lists));
}

/// Launches one block per chunk; there must be at least one chunk. The grid limit of 2^31 - 1
/// blocks is no limit in practice: 8 terabytes of elements, or tables of 256 gigabytes.
template <class Kernel, class... Arguments>
void launch_cast(Kernel kernel, const cast_lists& lists, cudaStream_t stream,
                 const Arguments&... arguments) {
  const auto blocks = static_cast<unsigned>(lists.to.chunks);
  launch_kernel("cast kernel", kernel, blocks, cast_threads, 0, stream, arguments..., lists);
}

/// The formats of a pair of tensors.
struct format_pair {
  format_id from, to;
};

/// Whether hardware instructions give the rule's results for all formats of a list.
bool supports_native_cast(const cast_rule& rule);
/// Enqueues the conversion by hardware instructions. `alike`: the formats that all pairs of tensors
/// share, or nothing.
void launch_native_cast(const cast_lists& lists, std::optional<format_pair> alike,
                        overflow on_overflow, cudaStream_t stream);
}  // namespace samebits::cuda
