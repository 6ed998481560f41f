// Tensor core settings: the parameters of an instruction's rule, and results by them.
#pragma once

#include <cstdint>

#include "numerics/hardware/accumulate.hpp"
#include "tensor_core_probe/cases.hpp"
#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

/// A floor below every exponent.
inline constexpr int no_floor = -4096;

tensor_setting setting_of(const numerics::accumulate_rule& rule);

/// setting.group divides the shape's products.
numerics::accumulate_rule rule_of(const shape& s, const tensor_setting& setting);

/// What the rule makes of a case.
std::uint32_t result_of(const numerics::accumulate_rule& rule, const case_codes& x);

}  // namespace samebits::backends::tensor_cores
