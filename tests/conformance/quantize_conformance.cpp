// The conformance suite of quantization over the backends that take host memory.
#include "conformance/quantize_suite.hpp"

namespace samebits::support {

INSTANTIATE_TEST_SUITE_P(Host, QuantizeSuite, ::testing::ValuesIn(host_quantizers()),
                         name_of_quantizer);

}  // namespace samebits::support
