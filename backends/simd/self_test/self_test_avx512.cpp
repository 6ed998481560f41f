// The self-test's probes compiled for AVX-512; nothing else may be defined here.
#include "backends/self_test/probes.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

void avx512_probes(probe_report& report) { run_probes(report); }

}  // namespace samebits::backends
