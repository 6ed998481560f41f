// Conversion of lists of tensors by hardware instructions, for cuda-native.
#include <cuda_runtime.h>

#include <optional>
#include <type_traits>

#include "backends/cuda/convert/native_op.cuh"
#include "backends/cuda/tensor_list/list_cast.cuh"
#include "backends/cuda/tensor_list/list_codes.cuh"

namespace samebits::cuda {
namespace {

using enum format_id;

/// Converts lists of mixed formats; each chunk selects its code by its tensor's formats. One block
/// per chunk.
///
/// For lists of one pair of formats this kernel is as fast as a kernel of that pair, except from 16
/// bits to 8: 97 instead of 102 % of the bandwidth of a device-to-device copy on an H200.
template <bool Saturate>
__global__ void __launch_bounds__(cast_threads, cast_residents)
    cast_mixed_kernel(const __grid_constant__ cast_lists lists) {
  const cast_chunk c = cast_chunk::of_block(lists);
  with_any(c.from.format, [&](auto from) {
    with_any(c.to.format, [&](auto to) {
      cast_by(native_op<from.value, to.value, Saturate>{{Saturate, {}}}, lists, c);
    });
  });
}

template <format_id From, format_id To>
void launch_pair(const cast_lists& lists, overflow on_overflow, cudaStream_t stream) {
  const auto launch = [&](const auto& op) {
    launch_cast(cast_alike_kernel<std::decay_t<decltype(op)>>, lists, stream, op);
  };
  if (on_overflow == overflow::saturate) return launch(native_op<From, To, true>{{true, {}}});
  launch(native_op<From, To, false>{{false, {}}});
}

}  // namespace

bool supports_native_cast(const cast_rule& rule) { return supports_native_op(rule); }

void launch_native_cast(const cast_lists& lists, std::optional<format_pair> alike,
                        overflow on_overflow, cudaStream_t stream) {
  const auto is = [&](format_id from, format_id to) {
    return alike && alike->from == from && alike->to == to;
  };
  if (is(bf16, e4m3)) return launch_pair<bf16, e4m3>(lists, on_overflow, stream);
  if (is(bf16, e5m2)) return launch_pair<bf16, e5m2>(lists, on_overflow, stream);
  if (is(fp16, e4m3)) return launch_pair<fp16, e4m3>(lists, on_overflow, stream);
  if (is(fp16, e5m2)) return launch_pair<fp16, e5m2>(lists, on_overflow, stream);
  if (on_overflow == overflow::saturate) {
    return launch_cast(cast_mixed_kernel<true>, lists, stream);
  }
  launch_cast(cast_mixed_kernel<false>, lists, stream);
}

}  // namespace samebits::cuda
