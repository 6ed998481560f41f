// Loops over vector functions of SLEEF and libmvec: implementation. Compiled for AVX-512.
#include "sleef_peer.hpp"

#include <immintrin.h>
#include <sleef.h>

extern "C" {
__m512 _ZGVeN16v_expf(__m512);
__m512 _ZGVeN16v_logf(__m512);
}

namespace samebits::bench {
namespace {

template <auto Vector>
void loop(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) {
    _mm512_storeu_ps(y + i, Vector(_mm512_loadu_ps(x + i)));
  }
}

bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }

}  // namespace

function_loop sleef_loop(function f) {
  if (!has_avx512()) return nullptr;
  switch (f) {
    case function::exp: return loop<Sleef_expf16_u10avx512f>;
    case function::exp2: return loop<Sleef_exp2f16_u10avx512f>;
    case function::expm1: return loop<Sleef_expm1f16_u10avx512f>;
    case function::log: return loop<Sleef_logf16_u10avx512f>;
    case function::log2: return loop<Sleef_log2f16_u10avx512f>;
    case function::log1p: return loop<Sleef_log1pf16_u10avx512f>;
    case function::tanh: return loop<Sleef_tanhf16_u10avx512f>;
    case function::erf: return loop<Sleef_erff16_u10avx512f>;
    default: return nullptr;
  }
}

function_loop libmvec_loop(function f) {
  if (!has_avx512()) return nullptr;
  if (f == function::exp) return loop<_ZGVeN16v_expf>;
  if (f == function::log) return loop<_ZGVeN16v_logf>;
  return nullptr;
}

}  // namespace samebits::bench
