// Tensor core settings: the parameters of an instruction's rule, and results by them.
#pragma once

#include <cstdint>

#include "backends/tensor_core_device.hpp"
#include "backends/tensor_cores/cases.hpp"
#include "numerics/accumulate.hpp"
#include "samebits/tensor_core_check.hpp"

namespace samebits::backends::tensor_cores {

/// A floor below every exponent.
inline constexpr int no_floor = -4096;

tensor_setting setting_of(const numerics::accumulate_rule& rule);

/// setting.group divides the shape's products.
numerics::accumulate_rule rule_of(const shape& s, const tensor_setting& setting);

/// What the rule makes of a case.
std::uint32_t result_of(const numerics::accumulate_rule& rule, const case_codes& x);

}  // namespace samebits::backends::tensor_cores
