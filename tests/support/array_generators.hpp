// RapidCheck's generator of array conversions.
#pragma once

#include <rapidcheck.h>

#include "engine/cases/convert.hpp"
#include "engine/core/layout.hpp"
#include "support/generators.hpp"

namespace samebits::support {

/// Cases of draw_array_case(), which shrink.
inline rc::Gen<array_case> array_cases() {
  return case_generator<array_case>(draw_array_case, simpler_array_cases);
}

}  // namespace samebits::support
