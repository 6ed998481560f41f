// The self-test's probes compiled for AVX2. This file must define nothing else.
#include "backends/self_test/probes.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

void avx2_probes(probe_report& report) { run_probes(report); }

}  // namespace samebits::backends
