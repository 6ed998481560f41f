// Tensor core settings: the parameters of an instruction's rule, and the results that they predict.
#pragma once

#include "numerics/hardware/accumulate.hpp"
#include "tensor_core_probe/cases.hpp"
#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

/// A floor below every exponent.
inline constexpr int no_floor = -4096;

/// The parameters of a rule.
tensor_setting setting_of(const numerics::accumulate_rule& rule);

/// The rule of a setting. setting.group must divide the shape's products.
numerics::accumulate_rule rule_of(const shape& s, const tensor_setting& setting);

/// The result that a rule predicts for a case.
std::uint32_t result_of(const numerics::accumulate_rule& rule, const case_codes& x);

}  // namespace samebits::backends::tensor_cores
