// Functions of the rule `exact` compiled for AVX-512. This file must define nothing else.
#include "backends/simd/functions/exact/exact_kernel.hpp"
#include "backends/simd/functions/functions.hpp"
#include "backends/simd/functions/exact/reals_avx512.hpp"
#include "backends/simd/lanes/lanes_avx512.hpp"

namespace samebits::backends {

void avx512_exact_codes(const evaluate_call& call, function_chunk& chunk, int count) {
  simd::exact_codes_of<avx512::isa, avx512::reals>(call, chunk, count);
}

}  // namespace samebits::backends
