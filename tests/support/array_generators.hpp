// RapidCheck's generator of array conversions.
#pragma once

#include <rapidcheck.h>

#include "engine/cases/convert.hpp"
#include "engine/core/layout.hpp"
#include "support/generators.hpp"

namespace samebits::support {

/// Cases of draw_array_case(), which shrink.
inline rc::Gen<array_case> array_cases() {
  return case_generator<array_case>(draw_array_case, [](const array_case& c) {
    return simpler_cases(c, [](array_case& other, case_fields& f) { describe_case(other, f); });
  });
}

}  // namespace samebits::support
