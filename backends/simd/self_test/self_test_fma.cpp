// The self-test's probes compiled for AVX2 with fused multiply-adds, as the kernels of functions of
// arrays are. This file must define nothing else.
#include "backends/self_test/probes.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

void fma_probes(probe_report& report) { run_probes(report); }

}  // namespace samebits::backends
