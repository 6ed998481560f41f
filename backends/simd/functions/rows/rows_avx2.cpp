// Functions of rows compiled for AVX2 and FMA. This file must define nothing else.
#include "backends/simd/functions/functions.hpp"
#include "backends/simd/functions/rows/row_kernel.hpp"
#include "backends/simd/functions/units_avx2.hpp"
#include "backends/simd/lanes/lanes_avx2.hpp"

namespace samebits::backends {

void avx2_row(const row_task& task) { simd::row_of<avx2::isa>(task); }

}  // namespace samebits::backends
