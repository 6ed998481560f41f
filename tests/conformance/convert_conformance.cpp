// The conformance suite of conversion over the backends that take host memory.
#include "conformance/convert_suite.hpp"

namespace samebits::support {

INSTANTIATE_TEST_SUITE_P(Host, ConvertSuite, ::testing::ValuesIn(host_targets()), name_of_target);

}  // namespace samebits::support
