// The self-test's probes, compiled with the flags of the reference loops.
#include "backends/self_test/self_test.hpp"

#include "backends/reference/reference.hpp"
#include "backends/self_test/probes.hpp"

namespace samebits::backends {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): decision 0009
constinit self_test_entry reference_self_test = {run_probes<probe_report>};

}  // namespace samebits::backends
