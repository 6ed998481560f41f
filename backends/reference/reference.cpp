// The reference backend's entry in the registry.
#include "backends/reference/reference.hpp"

namespace samebits::backends {

const backend reference = {"reference",
                           "portable C++, the definition itself",
                           memory_space::host,
                           [] { return std::string(); },
                           has_everything,
                           reference_convert,
                           nullptr,
                           &reference_self_test,
                           nullptr,
                           &reference_quantizer,
                           &reference_calculator,
                           &reference_plan_kernels,
                           nullptr,
                           &host_reducer,
                           &reference_multiplier};

}  // namespace samebits::backends
