// Conversion of matrices by hardware instructions, for cuda-native, where they were proved equal to
// the definition.
#include <cuda_runtime.h>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/convert/native_op.cuh"

namespace samebits::cuda {
namespace {

using backends::convert_call;
using enum format_id;

/// Launches dense_kernel; false for strides or alignment that dense_kernel does not support.
template <format_id From, format_id To, bool Saturate>
bool launch_pair(const convert_call& call, cudaStream_t stream) {
  using op_type = native_op<From, To, Saturate>;
  const op_type op{{Saturate, {}}};
  const auto d = dense_layout(call, op_type::pack, 1);
  if (!d) return false;
  launch_kernel("cuda-native: convert", dense_kernel<op_type>, dense_grid<op_type>(*d),
                block_threads, 0, stream, op, *d);
  return true;
}

/// Whether a pair of formats has a kernel. fp16 and bf16 into fp32, and FP8 into FP8, have none: the
/// definition converts them.
constexpr bool has_kernel(format_id from, format_id to) {
  const auto is_fp8 = [](format_id f) { return f == e4m3 || f == e5m2; };
  const auto is_half = [](format_id f) { return f == fp16 || f == bf16; };
  if (is_fp8(from)) return is_half(to) || to == fp32;
  return from != to && (is_half(from) || from == fp32) && (is_fp8(to) || is_half(to));
}

}  // namespace

bool native_supports(const convert_call& call) {
  return has_kernel(call.in.format, call.out.format) &&
         call.rule.rounding == rounding::nearest_even &&
         call.rule.overflow != overflow::saturate_finite && call.rule.nan == nan_policy::canonical;
}

void launch_native(const convert_call& call, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  bool done = false;
  backends::visit_list_format(call.in.format, [&](auto from) {
    backends::visit_list_format(call.out.format, [&](auto to) {
      constexpr format_id From = decltype(from)::id, To = decltype(to)::id;
      if constexpr (has_kernel(From, To)) {
        done = call.rule.overflow == overflow::saturate ? launch_pair<From, To, true>(call, s)
                                                        : launch_pair<From, To, false>(call, s);
      }
    });
  });
  // Strided and unaligned views use the definition's general kernel, which gives the same bits.
  if (!done) return launch_emulated(call, stream);
}

}  // namespace samebits::cuda
