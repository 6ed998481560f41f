// Functions of rows compiled for AVX-512. This file must define nothing else.
#include "backends/simd/functions/functions.hpp"
#include "backends/simd/functions/rows/row_kernel.hpp"
#include "backends/simd/functions/units_avx512.hpp"
#include "backends/simd/lanes/lanes_avx512.hpp"

namespace samebits::backends {

void avx512_row(const row_task& task) { simd::row_of<avx512::isa>(task); }

}  // namespace samebits::backends
