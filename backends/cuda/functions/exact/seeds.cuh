// Seeds: the GPU's binary64 approximations of 1 / x and 1 / sqrt(x), of about 20 bits.
#pragma once

namespace samebits::cuda {

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

}  // namespace samebits::cuda
