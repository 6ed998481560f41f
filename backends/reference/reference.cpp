// The reference backend's entry in the registry.
#include "backends/reference/reference.hpp"

namespace samebits::backends {

const backend reference = {
    .name = "reference",
    .description = "portable C++, the definition itself",
    .space = memory_space::host,
    .why_unsupported = [] { return std::string(); },
    .has = has_everything,
    .convert = reference_convert,
    .self_test = &reference_self_test,
    .quantizes = &reference_quantizer,
    .computes = &reference_calculator,
    .plans = &reference_plan_kernels,
    .reduces = &host_reducer,
    .multiplies = &reference_multiplier,
};

}  // namespace samebits::backends
