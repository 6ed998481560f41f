// NVIDIA's host headers as a witness: their conversions, compiled by a plain C++ compiler, against
// ours. Where the headers treat NaN otherwise than the contract, what they do is asserted exactly.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "oracle/thresholds.hpp"
#include "samebits/scalar.hpp"
#include "support/conversion_case.hpp"
#include "support/effort.hpp"
#include "support/generators.hpp"
#include "support/rules.hpp"
#include "support/sweep.hpp"

namespace samebits {
namespace {

using namespace support;
using enum format_id;

using code_function = std::uint64_t (*)(std::uint64_t);

/// One function of the headers and the call of ours that must give the same codes.
struct vendor_function {
  const char* name;
  format_id from;
  format_id to;
  cast_rule rule;
  code_function convert;
  /// What the header makes of a NaN code, where that is not what our call does.
  code_function nan = nullptr;
};

constexpr cast_rule satfinite{rounding::nearest_even, overflow::saturate};
/// The NaN of an overflow keeps its sign in the headers.
constexpr cast_rule nosat{rounding::nearest_even, overflow::ieee, nan_policy::preserve_sign};
constexpr cast_rule nearest{rounding::nearest_even, overflow::ieee};
constexpr cast_rule truncate{rounding::toward_zero, overflow::ieee};
constexpr cast_rule up{rounding::upward, overflow::ieee};
constexpr cast_rule down{rounding::downward, overflow::ieee};

float float_of(std::uint64_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code));
}
double double_of(std::uint64_t code) { return std::bit_cast<double>(code); }
__half_raw half_of(std::uint64_t code) {
  __half_raw h;
  h.x = static_cast<unsigned short>(code);
  return h;
}
__nv_bfloat16_raw bfloat_of(std::uint64_t code) {
  __nv_bfloat16_raw b;
  b.x = static_cast<unsigned short>(code);
  return b;
}
std::uint64_t code_of(const __half& h) { return static_cast<__half_raw>(h).x; }
std::uint64_t code_of(const __nv_bfloat16& b) { return static_cast<__nv_bfloat16_raw>(b).x; }

std::uint64_t canonical_7f(std::uint64_t) { return 0x7F; }
/// The double entry into e5m2 keeps the sign and the two top payload bits, quieted.
std::uint64_t double_nan_to_e5m2(std::uint64_t code) {
  return 0x7E | ((code >> 50) & 3) | ((code >> 56) & 0x80);
}
std::uint64_t shifted_up_16(std::uint64_t code) { return code << 16; }

template <__nv_saturation_t Saturation, __nv_fp8_interpretation_t Format>
std::uint64_t float_to_fp8(std::uint64_t c) {
  return __nv_cvt_float_to_fp8(float_of(c), Saturation, Format);
}
template <__nv_saturation_t Saturation, __nv_fp8_interpretation_t Format>
std::uint64_t double_to_fp8(std::uint64_t c) {
  return __nv_cvt_double_to_fp8(double_of(c), Saturation, Format);
}
template <__nv_saturation_t Saturation, __nv_fp8_interpretation_t Format>
std::uint64_t half_to_fp8(std::uint64_t c) {
  return __nv_cvt_halfraw_to_fp8(half_of(c), Saturation, Format);
}
template <__nv_saturation_t Saturation, __nv_fp8_interpretation_t Format>
std::uint64_t bfloat_to_fp8(std::uint64_t c) {
  return __nv_cvt_bfloat16raw_to_fp8(bfloat_of(c), Saturation, Format);
}
template <__nv_fp8_interpretation_t Format>
std::uint64_t fp8_to_half(std::uint64_t c) {
  return __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(c), Format).x;
}

template <__nv_saturation_t Saturation, cudaRoundMode Round>
std::uint64_t float_to_e8m0(std::uint64_t c) {
  return __nv_cvt_float_to_e8m0(float_of(c), Saturation, Round);
}
template <__nv_saturation_t Saturation, cudaRoundMode Round>
std::uint64_t double_to_e8m0(std::uint64_t c) {
  return __nv_cvt_double_to_e8m0(double_of(c), Saturation, Round);
}
template <__nv_saturation_t Saturation, cudaRoundMode Round>
std::uint64_t bfloat_to_e8m0(std::uint64_t c) {
  return __nv_cvt_bfloat16raw_to_e8m0(bfloat_of(c), Saturation, Round);
}

template <cudaRoundMode Round>
std::uint64_t float_to_fp4(std::uint64_t c) {
  return __nv_cvt_float_to_fp4(float_of(c), __NV_E2M1, Round);
}
template <cudaRoundMode Round>
std::uint64_t double_to_fp4(std::uint64_t c) {
  return __nv_cvt_double_to_fp4(double_of(c), __NV_E2M1, Round);
}
template <cudaRoundMode Round, __nv_fp6_interpretation_t Format>
std::uint64_t float_to_fp6(std::uint64_t c) {
  return __nv_cvt_float_to_fp6(float_of(c), Format, Round);
}
template <cudaRoundMode Round, __nv_fp6_interpretation_t Format>
std::uint64_t double_to_fp6(std::uint64_t c) {
  return __nv_cvt_double_to_fp6(double_of(c), Format, Round);
}

const std::vector<vendor_function>& functions() {
  constexpr auto zero = cudaRoundZero;
  constexpr auto even = cudaRoundNearest;
  constexpr auto pos_inf = cudaRoundPosInf;
  constexpr cast_rule up_saturate{rounding::upward, overflow::saturate};
  constexpr cast_rule zero_saturate{rounding::toward_zero, overflow::saturate};
  static const std::vector<vendor_function> all{
      {"float_to_fp8_e4m3_satfinite", fp32, e4m3, satfinite,
       float_to_fp8<__NV_SATFINITE, __NV_E4M3>},
      {"float_to_fp8_e5m2_satfinite", fp32, e5m2, satfinite,
       float_to_fp8<__NV_SATFINITE, __NV_E5M2>},
      {"float_to_fp8_e4m3_nosat", fp32, e4m3, nosat, float_to_fp8<__NV_NOSAT, __NV_E4M3>,
       canonical_7f},
      {"float_to_fp8_e5m2_nosat", fp32, e5m2, nosat, float_to_fp8<__NV_NOSAT, __NV_E5M2>,
       canonical_7f},
      {"double_to_fp8_e4m3_satfinite",
       fp64,
       e4m3,
       {rounding::nearest_even, overflow::saturate, nan_policy::preserve_sign},
       double_to_fp8<__NV_SATFINITE, __NV_E4M3>},
      {"double_to_fp8_e5m2_satfinite", fp64, e5m2, satfinite,
       double_to_fp8<__NV_SATFINITE, __NV_E5M2>, double_nan_to_e5m2},
      {"double_to_fp8_e4m3_nosat", fp64, e4m3, nosat, double_to_fp8<__NV_NOSAT, __NV_E4M3>},
      {"double_to_fp8_e5m2_nosat", fp64, e5m2, nosat, double_to_fp8<__NV_NOSAT, __NV_E5M2>,
       double_nan_to_e5m2},
      {"half_to_fp8_e4m3_satfinite", fp16, e4m3, satfinite, half_to_fp8<__NV_SATFINITE, __NV_E4M3>},
      {"half_to_fp8_e5m2_nosat", fp16, e5m2, nosat, half_to_fp8<__NV_NOSAT, __NV_E5M2>,
       canonical_7f},
      {"bfloat_to_fp8_e4m3_nosat", bf16, e4m3, nosat, bfloat_to_fp8<__NV_NOSAT, __NV_E4M3>,
       canonical_7f},
      {"bfloat_to_fp8_e5m2_satfinite", bf16, e5m2, satfinite,
       bfloat_to_fp8<__NV_SATFINITE, __NV_E5M2>},
      {"fp8_e4m3_to_half", e4m3, fp16, nearest, fp8_to_half<__NV_E4M3>},
      {"fp8_e5m2_to_half", e5m2, fp16, nearest, fp8_to_half<__NV_E5M2>},
      {"float_to_half_rn", fp32, fp16, nearest,
       [](std::uint64_t c) { return code_of(__float2half_rn(float_of(c))); }},
      {"float_to_half_rz", fp32, fp16, truncate,
       [](std::uint64_t c) { return code_of(__float2half_rz(float_of(c))); }},
      {"float_to_half_rd", fp32, fp16, down,
       [](std::uint64_t c) { return code_of(__float2half_rd(float_of(c))); }},
      {"float_to_half_ru", fp32, fp16, up,
       [](std::uint64_t c) { return code_of(__float2half_ru(float_of(c))); }},
      {"double_to_half", fp64, fp16, nearest,
       [](std::uint64_t c) { return code_of(__double2half(double_of(c))); }},
      {"half_to_float", fp16, fp32, nearest,
       [](std::uint64_t c) {
         return std::uint64_t{std::bit_cast<std::uint32_t>(__half2float(half_of(c)))};
       }},
      {"float_to_bfloat_rn", fp32, bf16, nearest,
       [](std::uint64_t c) { return code_of(__float2bfloat16_rn(float_of(c))); }},
      {"float_to_bfloat_rz", fp32, bf16, truncate,
       [](std::uint64_t c) { return code_of(__float2bfloat16_rz(float_of(c))); }},
      {"float_to_bfloat_rd", fp32, bf16, down,
       [](std::uint64_t c) { return code_of(__float2bfloat16_rd(float_of(c))); }},
      {"float_to_bfloat_ru", fp32, bf16, up,
       [](std::uint64_t c) { return code_of(__float2bfloat16_ru(float_of(c))); }},
      {"double_to_bfloat", fp64, bf16, nearest,
       [](std::uint64_t c) { return code_of(__double2bfloat16(double_of(c))); }},
      {"bfloat_to_float", bf16, fp32, nearest,
       [](std::uint64_t c) {
         return std::uint64_t{std::bit_cast<std::uint32_t>(__bfloat162float(bfloat_of(c)))};
       },
       shifted_up_16},
      {"float_to_e8m0_rz", fp32, e8m0, truncate, float_to_e8m0<__NV_NOSAT, zero>},
      {"float_to_e8m0_rz_satfinite", fp32, e8m0, zero_saturate,
       float_to_e8m0<__NV_SATFINITE, zero>},
      {"float_to_e8m0_rp", fp32, e8m0, up, float_to_e8m0<__NV_NOSAT, pos_inf>},
      {"float_to_e8m0_rp_satfinite", fp32, e8m0, up_saturate,
       float_to_e8m0<__NV_SATFINITE, pos_inf>},
      {"double_to_e8m0_rz", fp64, e8m0, truncate, double_to_e8m0<__NV_NOSAT, zero>},
      {"double_to_e8m0_rp_satfinite", fp64, e8m0, up_saturate,
       double_to_e8m0<__NV_SATFINITE, pos_inf>},
      {"bfloat_to_e8m0_rz_satfinite", bf16, e8m0, zero_saturate,
       bfloat_to_e8m0<__NV_SATFINITE, zero>},
      {"bfloat_to_e8m0_rp", bf16, e8m0, up, bfloat_to_e8m0<__NV_NOSAT, pos_inf>},
      {"e8m0_to_bfloat", e8m0, bf16, nearest,
       [](std::uint64_t c) {
         return std::uint64_t{__nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(c)).x};
       }},
      {"float_to_fp4_rn", fp32, e2m1, satfinite, float_to_fp4<even>},
      {"float_to_fp4_rz", fp32, e2m1, zero_saturate, float_to_fp4<zero>},
      {"double_to_fp4_rn", fp64, e2m1, satfinite, double_to_fp4<even>},
      {"fp4_to_half", e2m1, fp16, nearest,
       [](std::uint64_t c) {
         return std::uint64_t{
             __nv_cvt_fp4_to_halfraw(static_cast<__nv_fp4_storage_t>(c), __NV_E2M1).x};
       }},
      {"float_to_fp6_e3m2_rn", fp32, e3m2, satfinite, float_to_fp6<even, __NV_E3M2>},
      {"float_to_fp6_e3m2_rz", fp32, e3m2, zero_saturate, float_to_fp6<zero, __NV_E3M2>},
      {"float_to_fp6_e2m3_rn", fp32, e2m3, satfinite, float_to_fp6<even, __NV_E2M3>},
      {"float_to_fp6_e2m3_rz", fp32, e2m3, zero_saturate, float_to_fp6<zero, __NV_E2M3>},
      {"double_to_fp6_e3m2_rn", fp64, e3m2, satfinite, double_to_fp6<even, __NV_E3M2>},
      {"double_to_fp6_e2m3_rz", fp64, e2m3, zero_saturate, double_to_fp6<zero, __NV_E2M3>},
      {"fp6_e3m2_to_half", e3m2, fp16, nearest,
       [](std::uint64_t c) {
         return std::uint64_t{
             __nv_cvt_fp6_to_halfraw(static_cast<__nv_fp6_storage_t>(c), __NV_E3M2).x};
       }},
      {"fp6_e2m3_to_half", e2m3, fp16, nearest,
       [](std::uint64_t c) {
         return std::uint64_t{
             __nv_cvt_fp6_to_halfraw(static_cast<__nv_fp6_storage_t>(c), __NV_E2M3).x};
       }},
  };
  return all;
}

class VendorWitness : public ::testing::TestWithParam<vendor_function> {
 protected:
  /// False, after a failure was added, if the two disagree.
  static bool agrees(std::uint64_t code) {
    const vendor_function& f = GetParam();
    const std::uint64_t theirs = f.convert(code);
    if (f.nan != nullptr && is_nan(f.from, code)) {
      const bool as_known = theirs == f.nan(code);
      EXPECT_TRUE(as_known) << f.name << " of the NaN " << code_text(f.from, code) << " gives "
                            << code_text(f.to, theirs) << ", known was "
                            << code_text(f.to, f.nan(code));
      return as_known;
    }
    const std::uint64_t ours = convert_code(f.from, f.to, code, f.rule).code;
    if (ours == theirs) return true;
    conversion_case c{f.from, f.to, code, f.rule};
    c.where = std::string("convert_code; expected is the header's ") + f.name;
    EXPECT_TRUE(same_code(c, ours, theirs));
    return false;
  }
};

TEST_P(VendorWitness, Agrees) {
  const vendor_function& f = GetParam();
  if (spec_of(f.from).storage_bits <= 16) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << spec_of(f.from).storage_bits; ++code) {
      if (!agrees(code)) return;
    }
    return;
  }
  if (f.from == fp32) {
    const oracle::step_function steps =
        oracle::make_step_function(oracle_of(fp32), oracle_of(f.to), f.rule);
    for (const std::uint32_t code : code_steps(steps).codes_around(2)) {
      if (!agrees(code)) return;
    }
    constexpr std::uint64_t stride = 199 * effort_divisor;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << 32; code += stride) {
      if (!agrees(code)) return;
    }
    return;
  }
  std::mt19937_64 engine(64);
  const word_source next = [&engine] { return engine(); };
  for (int i = 0; i < 300000; ++i) {
    const auto family = static_cast<code_family>(i % code_family_count);
    if (!agrees(draw_code(family, f.from, f.to, next))) return;
  }
}

std::string name_of(const ::testing::TestParamInfo<vendor_function>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(CudaHeaders, VendorWitness, ::testing::ValuesIn(functions()), name_of);

}  // namespace
}  // namespace samebits
