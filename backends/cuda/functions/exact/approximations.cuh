// Approximations: functions of rule `exact` in fewer binary64 instructions than the definition.
//
// approximation<F>(x, known) is within 2^-39 of the exact value, relative, where it leaves `known`
// true. Results that are 0 or Inf in every destination may be any number beyond the destinations,
// of the right sign. approximation_kernel.cuh decides which results this suffices for.
//
// The lanes of CPUs have other sequences, numerics/functions/fast_values.hpp: they divide, where a
// GPU has seeds, and leave far operands to the definition, which would delay a GPU's whole warp.
//
// Coefficients: approximations.sollya. docs/decisions/0047-approximations-with-a-rounding-test.md
// bounds the errors.
#pragma once

#include "numerics/functions/exact_functions.hpp"

namespace samebits::cuda {

using numerics::real::exact_function;

/// 1 / x with a relative error below 2^-18, for x whose reciprocal is a normal number.
__device__ __forceinline__ double reciprocal_seed(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}

/// 1 / sqrt(x) with a relative error below 2^-18, for normal x > 0.
__device__ __forceinline__ double rsqrt_seed(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}

/// The polynomial with these coefficients, the highest degree first, at x: Horner's scheme.
template <class... Lower>
__device__ __forceinline__ double polynomial(double x, double highest, Lower... lower) {
  double q = highest;
  ((q = __fma_rn(q, x, lower)), ...);
  return q;
}

/// 1 / d: the error e of the seed r gives 1 / d = r (1 + e + e^2 + ...), up to e^3 < 2^-54.
__device__ __forceinline__ double reciprocal_of(double d) {
  const double r = reciprocal_seed(d);
  const double e = __fma_rn(-d, r, 1.0);
  return __fma_rn(r, __fma_rn(e, e, e), r);
}

/// x with the sign of `sign`; x must be +0 or positive, or have this sign.
__device__ __forceinline__ double with_sign_of(double x, float sign) {
  const auto bit = static_cast<int>(__float_as_uint(sign) & 0x80000000u);
  return __hiloint2double(__double2hiint(x) | bit, __double2loint(x));
}

/// x, or a number from `limit` to limit (1 + 2^-20) if x is larger. `limit_high` is the upper half
/// of the bits of a positive limit.
__device__ __forceinline__ double at_most(double x, int limit_high) {
  return __hiloint2double(min(__double2hiint(x), limit_high), __double2loint(x));
}

/// k, the whole number nearest to x * factor: as a number, and in the low bits of 2^52 + 2^51 + k.
struct nearest_number {
  double value;
  double shifted;
};
__device__ __forceinline__ nearest_number nearest_number_to(double x, double factor) {
  constexpr double shifter = 0x1.8p52;
  const double shifted = __fma_rn(x, factor, shifter);
  return {shifted - shifter, shifted};
}
/// 2^k x; x and the result must be normal numbers.
__device__ __forceinline__ double scaled(double x, const nearest_number& k) {
  return __hiloint2double(__double2hiint(x) + (__double2loint(k.shifted) << 20), __double2loint(x));
}

/// e^x for |x| <= 700.
__device__ __forceinline__ double exp_of(double x) {
  const nearest_number k = nearest_number_to(x, 0x1.71547652b82fep+0);
  const double r = __fma_rn(k.value, -0x1.62e42fefa39efp-1, x);
  return scaled(polynomial(r, 0x1.9ef35fdfd03d6p-16, 0x1.a1a40c7e5a93ap-13, 0x1.6c188a7f9867fp-10,
                           0x1.11108670e8541p-7, 0x1.55555430b19d5p-5, 0x1.5555559c4d168p-3,
                           0x1.0000000064b78p-1, 0x1.ffffffffdac6fp-1, 1.0),
                k);
}

/// 2^x for |x| <= 1000.
__device__ __forceinline__ double exp2_of(double x) {
  const nearest_number k = nearest_number_to(x, 1.0);
  return scaled(polynomial(x - k.value, 0x1.61c4f0e5d3054p-20, 0x1.00d8533617c38p-16,
                           0x1.430aa882a3b6ep-13, 0x1.5d874d07141f8p-10, 0x1.3b2ab5ed6fdfp-7,
                           0x1.c6b08dced33e3p-5, 0x1.ebfbdff8ede83p-3, 0x1.62e42fef89d1fp-1, 1.0),
                k);
}

/// e^x - 1 for |x| <= 700: +0 at -0.
__device__ __forceinline__ double expm1_of(double x) {
  const nearest_number k = nearest_number_to(x, 0x1.71547652b82fep+0);
  const double r = __fma_rn(k.value, -0x1.62e42fefa39efp-1, x);
  const double p =
      r * polynomial(r, 0x1.71e941f2c709ep-19, 0x1.a15838be2d9a9p-16, 0x1.a01a7d2be37afp-13,
                     0x1.6c164fdb1a261p-10, 0x1.111110e14331cp-7, 0x1.555555731e7f4p-5,
                     0x1.55555555671f1p-3, 0x1.fffffffff7c1ep-2, 1.0);
  const double scale = scaled(1.0, k);
  return __fma_rn(scale, p, scale - 1.0);
}

/// log(1 + f) + low for 1 / sqrt(2) - 1 <= f <= sqrt(2) - 1.
__device__ __forceinline__ double log_of(double f, double low) {
  const double s = f * reciprocal_of(f + 2.0);
  return __fma_rn(
      s,
      polynomial(s * s, 0x1.919fd38786d5ap-3, 0x1.c62009bbf4f35p-3, 0x1.24943adf0c7e4p-2,
                 0x1.99999625279cfp-2, 0x1.5555555674412p-1, 0x1.fffffffffff0fp0),
      low);
}

/// log2(1 + f) + low for 1 / sqrt(2) - 1 <= f <= sqrt(2) - 1.
__device__ __forceinline__ double log2_of(double f, double low) {
  const double s = f * reciprocal_of(f + 2.0);
  return __fma_rn(
      s,
      polynomial(s * s, 0x1.21b60fea7a93ap-2, 0x1.4794feb6ef257p-2, 0x1.a61a30cc9354fp-2,
                 0x1.2776c290dc8abp-1, 0x1.ec709dc53e5a5p-1, 0x1.71547652b825p1),
      low);
}

/// x = 2^k (1 + f), for normal x > 0.
struct log_split {
  double k;
  double f;
};
__device__ __forceinline__ double exponent_number(unsigned field, double bias) {
  return __hiloint2double(0x43300000, static_cast<int>(field)) - (0x1p52 + bias);
}
__device__ __forceinline__ log_split split_for_log(float x) {
  constexpr unsigned root = 0x3F3504F3;  // sqrt(1/2)
  const unsigned field = __float_as_uint(x) + (0x3F800000u - root);
  const float m = __uint_as_float((field & 0x007FFFFFu) + root);
  return {exponent_number(field >> 23, 127.0), static_cast<double>(m - 1.0f)};
}
__device__ __forceinline__ log_split split_for_log(double x) {
  constexpr unsigned root = 0x3FE6A09E;  // upper half of sqrt(1/2)
  const unsigned field = static_cast<unsigned>(__double2hiint(x)) + (0x3FF00000u - root);
  const double m =
      __hiloint2double(static_cast<int>((field & 0x000FFFFFu) + root), __double2loint(x));
  return {exponent_number(field >> 20, 1023.0), m - 1.0};
}

/// e^(a^2 / 2) Phi(-a) for 0 <= a <= 14.6.
__device__ __forceinline__ double tail_factor_of(double a) {
  const double t = (a - 4.0) * reciprocal_of(a + 4.0);
  return polynomial(t, 0x1.71d75053c1c7dp-23, 0x1.0f956a61e317fp-21, -0x1.cd86db1cc4b32p-21,
                    -0x1.198b575c2dcb4p-18, 0x1.398c20a067469p-18, 0x1.dff8e337c5ee4p-16,
                    -0x1.7e4a0e86a8083p-15, -0x1.888944d2ac7c6p-13, 0x1.4eeca136653acp-11,
                    0x1.0a1bb062a499fp-11, -0x1.1644dcf739265p-7, 0x1.f9b05f21fda31p-6,
                    -0x1.25b6aa954a64p-4, 0x1.fd751a1f98a1cp-4, -0x1.5cf97b0aea0abp-3,
                    0x1.82b4bb8c9505ep-4);
}

__device__ __forceinline__ double erf_of(double a) {
  if (a >= 1.0) {
    return __fma_rn(-2.0, exp_of(a * -a) * tail_factor_of(a * 0x1.6a09e667f3bcdp+0), 1.0);
  }
  return a * polynomial(a * a, -0x1.c0912723d107fp-24, 0x1.9a929064dc0d6p-20,
                        -0x1.f05df26909deep-17, 0x1.f93f66e5737edp-14, -0x1.c028401888802p-11,
                        0x1.565b9e4d688a8p-8, -0x1.b82ce143aab5ap-6, 0x1.ce2f219720a8ep-4,
                        -0x1.812746b025a23p-2, 0x1.20dd750429b0fp0);
}

/// log(1 + e^x). Above e^-|x| = sqrt(2) - 1: log(1 + u) = log(2) + log(1 + (u - 1) / 2).
__device__ __forceinline__ double softplus_of(float x) {
  const float size = fabsf(x);
  const double u = exp_of(-static_cast<double>(fminf(size, 105.0f)));
  const bool halved = size < 0.8814f;
  const double f = halved ? __fma_rn(u, 0.5, -0.5) : u;
  const double whole = halved ? 0x1.62e42fefa39efp-1 : 0.0;
  return log_of(f, whole + static_cast<double>(fmaxf(x, 0.0f)));
}

__device__ __forceinline__ double gelu_of(float x) {
  const double factor = fmaxf(x, -14.5f);
  const double a = at_most(fabs(factor), 0x402D0000);  // 14.5
  const double tail = exp_of(a * a * -0.5) * tail_factor_of(a);
  return factor * (x < 0.0f ? tail : 1.0 - tail);
}

__device__ __forceinline__ double gelu_tanh_of(float x) {
  const double factor = fmaxf(x, -12.0f);
  const double a = at_most(factor, 0x40200000);  // 8
  const double v = a * __fma_rn(0x1.2444f2a4d8b4bp-4, a * a, 0x1.9884533d43651p+0);
  return factor * reciprocal_of(exp_of(-v) + 1.0);
}

__device__ __forceinline__ double silu_of(float x) {
  const double factor = fmaxf(x, -120.0f);
  return factor * reciprocal_of(exp_of(-at_most(factor, 0x40440000)) + 1.0);  // 40
}

__device__ __forceinline__ double rsqrt_of(double x) {
  const double r = rsqrt_seed(x);
  const double e = __fma_rn(-(x * r), r, 1.0);
  return __fma_rn(r * e, __fma_rn(e, 0.375, 0.5), r);
}

/// Whether approximation<F> exists: for all functions but the gradients.
template <exact_function F>
inline constexpr bool has_approximation = F < exact_function::silu_gradient;

/// The function at x. Sets `known` to false where it does not compute the function.
template <exact_function F>
__device__ __forceinline__ double approximation(float x, bool& known) {
  const unsigned bits = __float_as_uint(x);
  known = x == x;
  const auto clamped = [&](float low, float high) {
    return static_cast<double>(fmaxf(fminf(x, high), low));
  };
  if constexpr (F == exact_function::exp) {
    return exp_of(clamped(-105.0f, 89.0f));
  } else if constexpr (F == exact_function::exp2) {
    return exp2_of(clamped(-152.0f, 129.0f));
  } else if constexpr (F == exact_function::expm1) {
    return with_sign_of(expm1_of(clamped(-40.0f, 89.0f)), x);
  } else if constexpr (F == exact_function::log || F == exact_function::log2) {
    known = bits - 0x00800000u < 0x7F000000u;  // normal and above 0
    const log_split parts = split_for_log(x);
    if constexpr (F == exact_function::log2)
      return log2_of(parts.f, parts.k);
    else
      return log_of(parts.f, parts.k * 0x1.62e42fefa39efp-1);
  } else if constexpr (F == exact_function::log1p) {
    known = x > -1.0f && bits != 0x7F800000u;
    const double wide = x;
    const log_split parts = split_for_log(wide + 1.0);
    const double f = parts.k == 0.0 ? wide : parts.f;
    return with_sign_of(log_of(f, parts.k * 0x1.62e42fefa39efp-1), x);
  } else if constexpr (F == exact_function::tanh) {
    const float size = fminf(fabsf(x), 20.0f);
    const double m = expm1_of(size + size);
    return with_sign_of(m * reciprocal_of(m + 2.0), x);
  } else if constexpr (F == exact_function::erf) {
    return with_sign_of(erf_of(fminf(fabsf(x), 6.0f)), x);
  } else if constexpr (F == exact_function::rsqrt) {
    known = bits - 1u < 0x7F7FFFFFu;  // finite and above 0
    return rsqrt_of(x);
  } else if constexpr (F == exact_function::reciprocal) {
    known = (bits & 0x7FFFFFFFu) - 1u < 0x7F7FFFFFu;  // finite and not 0
    return reciprocal_of(x);
  } else if constexpr (F == exact_function::sigmoid) {
    return reciprocal_of(exp_of(-clamped(-106.0f, 40.0f)) + 1.0);
  } else if constexpr (F == exact_function::silu) {
    return silu_of(x);
  } else if constexpr (F == exact_function::gelu) {
    return gelu_of(x);
  } else if constexpr (F == exact_function::gelu_tanh) {
    return gelu_tanh_of(x);
  } else {
    static_assert(F == exact_function::softplus);
    return softplus_of(x);
  }
}

}  // namespace samebits::cuda
