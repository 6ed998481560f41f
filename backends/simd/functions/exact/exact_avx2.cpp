// Functions of the rule `exact` compiled for AVX2 and FMA. This file must define nothing else.
#include "backends/simd/functions/exact/exact_kernel.hpp"
#include "backends/simd/functions/functions.hpp"
#include "backends/simd/functions/exact/reals_avx2.hpp"
#include "backends/simd/lanes/lanes_avx2.hpp"

namespace samebits::backends {

void avx2_exact_codes(const evaluate_call& call, function_chunk& chunk, int count) {
  simd::exact_codes_of<avx2::isa, avx2::reals>(call, chunk, count);
}

}  // namespace samebits::backends
