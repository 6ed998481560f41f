// The conformance suite of array arithmetic over the backends that take host memory.
#include "conformance/compute_suite.hpp"

namespace samebits::support {

INSTANTIATE_TEST_SUITE_P(Host, ComputeSuite, ::testing::ValuesIn(host_calculators()),
                         name_of_calculator);

}  // namespace samebits::support
