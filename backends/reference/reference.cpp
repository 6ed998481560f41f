// The reference backend's entry in the registry.
#include "backends/reference/reference.hpp"

namespace samebits::backends {

const backend reference = {"reference", "portable C++, the definition itself", [] { return true; },
                           reference_convert};

}  // namespace samebits::backends
