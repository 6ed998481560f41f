// The reference backend: plain loops over the one definition.
#pragma once

#include "backends/backend.hpp"

namespace samebits::backends {

extern const backend reference;

void reference_convert(const convert_call& call, element_range range);

}  // namespace samebits::backends
