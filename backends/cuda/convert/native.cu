// Conversion of matrices by hardware instructions, for cuda-native, where they were proved equal to
// the definition.
#include <cuda_runtime.h>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/convert/dense_launch.cuh"
#include "backends/cuda/convert/native_op.cuh"

namespace samebits::cuda {
namespace {

using backends::convert_call;
using enum format_id;

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
  return has_kernel(call.in.format, call.out.format) && supports_native_op(call.rule);
}

void launch_native(const convert_call& call, void* stream) {
  const auto dense = [&](const auto& op) {
    return launch_dense("cuda-native: convert", op, call, stream);
  };
  const bool done = backends::with_list_format(call.in.format, [&]<format_id From>() {
    return backends::with_list_format(call.out.format, [&]<format_id To>() {
      if constexpr (has_kernel(From, To)) {
        if (call.rule.overflow == overflow::saturate) {
          return dense(native_op<From, To, true>{{true, {}}});
        }
        return dense(native_op<From, To, false>{{false, {}}});
      }
      return false;
    });
  });
  // Strided and unaligned views use the definition's general kernel, which gives the same bits.
  if (!done) launch_emulated(call, stream);
}

}  // namespace samebits::cuda
