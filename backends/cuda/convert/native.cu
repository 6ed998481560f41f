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

template <format_id From, format_id To>
bool launch_policy(const convert_call& call, cudaStream_t stream) {
  return call.rule.overflow == overflow::saturate ? launch_pair<From, To, true>(call, stream)
                                                  : launch_pair<From, To, false>(call, stream);
}

template <format_id From>
bool launch_from(const convert_call& call, cudaStream_t stream) {
  switch (call.out.format) {
    case e4m3: return launch_policy<From, e4m3>(call, stream);
    case e5m2: return launch_policy<From, e5m2>(call, stream);
    case fp16:
      if constexpr (From == fp32) return launch_policy<fp32, fp16>(call, stream);
      break;
    case bf16:
      if constexpr (From == fp32) return launch_policy<fp32, bf16>(call, stream);
      break;
    default: break;
  }
  return false;
}

}  // namespace

bool native_supports(const convert_call& call) {
  const format_id from = call.in.format, to = call.out.format;
  const bool fp8 = (to == e4m3 || to == e5m2) && (from == fp32 || from == fp16 || from == bf16);
  const bool half = (to == fp16 || to == bf16) && from == fp32;
  return (fp8 || half) && call.rule.rounding == rounding::nearest_even &&
         call.rule.overflow != overflow::saturate_finite && call.rule.nan == nan_policy::canonical;
}

void launch_native(const convert_call& call, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const bool done = call.in.format == fp32   ? launch_from<fp32>(call, s)
                    : call.in.format == fp16 ? launch_from<fp16>(call, s)
                                             : launch_from<bf16>(call, s);
  // Strided and unaligned views use the definition's general kernel, which gives the same bits.
  if (!done) return launch_emulated(call, stream);
}

}  // namespace samebits::cuda
