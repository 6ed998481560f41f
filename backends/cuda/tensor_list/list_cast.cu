// Conversion of lists of tensors on CUDA: chooses the kernel. One launch per list.
#include "backends/cuda/tensor_list/list_cast.cuh"

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include "backends/cuda/tensor_list/list.hpp"
#include "backends/cuda/tensor_list/list_any.cuh"

namespace samebits::cuda {
namespace {

using numerics::list_row;

/// Converts lists of mixed formats, by any rule, element by element. One block per chunk.
__global__ void __launch_bounds__(cast_threads, cast_residents)
    cast_any_kernel(const __grid_constant__ cast_rule rule,
                    const __grid_constant__ random_source random,
                    const __grid_constant__ cast_lists lists) {
  const cast_chunk c = cast_chunk::of_block(lists);
  const any_codes in{c.from, c.range.first}, out{c.to, c.range.first};
#pragma unroll 1
  for (std::int64_t i = threadIdx.x; i < c.range.count; i += cast_threads) {
    const std::uint32_t dither = rule.rounding == rounding::stochastic
                                     ? dither_of(random, c.index(lists, i), c.range.tensor)
                                     : 0;
    out.store(
        i, numerics::convert<std::uint32_t>(in.format, out.format, rule, in.load(i), dither).code);
  }
}

/// The formats that all pairs of non-empty tensors share, or nothing.
std::optional<format_pair> common_formats(std::span<const list_row> from,
                                          std::span<const list_row> to) {
  std::optional<format_pair> common;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].count == 0) continue;
    if (!common) common = {from[i].format, to[i].format};
    if (common->from != from[i].format || common->to != to[i].format) return std::nullopt;
  }
  return common;
}

/// Enqueues the conversion with formats and rounding mode as constants, or the widths of both formats.
/// Returns false without a launch for formats of other widths than 8, 16 and 32 bits.
bool launch_alike(const conversion& what, const cast_lists& lists, cudaStream_t stream) {
  const auto launch = [&](const auto& op) {
    launch_cast(cast_alike_kernel<std::decay_t<decltype(op)>>, lists, stream, op);
    return true;
  };
  return with_fixed_op(what, launch) || with_general_op(what, launch);
}

cast_lists lists_of(const backends::cast_call& call) {
  const bool draws = call.rule.rounding == rounding::stochastic;
  const bool has_pitch = draws && call.random.pitch.has_value();
  return {call.from.tables(), call.to.tables(), draws ? call.random.offset : 0,
          has_pitch ? *call.random.pitch : 0, !has_pitch};
}

}  // namespace

void enqueue_cast(const backends::cast_call& call, arithmetic by, void* stream) {
  const cast_lists lists = lists_of(call);
  if (lists.to.chunks == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const std::optional<format_pair> alike = common_formats(call.from.rows, call.to.rows);
  if (by == arithmetic::hardware && supports_native_cast(call.rule)) {
    return launch_native_cast(lists, alike, call.rule.overflow, on);
  }
  if (alike) {
    const conversion what{alike->from, alike->to, call.rule, call.random};
    if (launch_alike(what, lists, on)) return;
  }
  launch_cast(cast_any_kernel, lists, on, call.rule, source_of(call.random));
}

}  // namespace samebits::cuda
