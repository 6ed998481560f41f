// The self-test's probes compiled for AVX-512. This file must define nothing else.
#include "backends/self_test/probes.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

void avx512_probes(probe_report& report) { run_probes(report); }

}  // namespace samebits::backends
