// Loops over the vendor's host functions.
#include "vendor.hpp"

#if defined(SAMEBITS_BENCH_VENDOR)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#endif

namespace samebits::bench {
#if defined(SAMEBITS_BENCH_VENDOR)
namespace {

template <class Code, class Function>
void loop(const float* in, std::byte* out, std::int64_t count, const Function& f) {
  auto* codes = reinterpret_cast<Code*>(out);
  for (std::int64_t i = 0; i < count; ++i) codes[i] = f(in[i]);
}

template <__nv_fp8_interpretation_t Format>
void fp8(const float* in, std::byte* out, std::int64_t count) {
  loop<__nv_fp8_storage_t>(
      in, out, count, [](float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, Format); });
}
void fp16(const float* in, std::byte* out, std::int64_t count) {
  loop<__half>(in, out, count, [](float x) { return __float2half_rn(x); });
}
void bf16(const float* in, std::byte* out, std::int64_t count) {
  loop<__nv_bfloat16>(in, out, count, [](float x) { return __float2bfloat16_rn(x); });
}

}  // namespace

vendor_loop vendor_conversion(format_id to) {
  switch (to) {
    case format_id::e4m3: return fp8<__NV_E4M3>;
    case format_id::e5m2: return fp8<__NV_E5M2>;
    case format_id::fp16: return fp16;
    case format_id::bf16: return bf16;
    default: return nullptr;
  }
}
#else
vendor_loop vendor_conversion(format_id) { return nullptr; }
#endif
}  // namespace samebits::bench
