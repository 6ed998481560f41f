// The part of `fpinspect arith` that evaluates functions.
#pragma once

#include <string_view>

#include "fpinspect/cli/options.hpp"
#include "fpinspect/output/output.hpp"
#include "samebits/core/function.hpp"

namespace fpinspect {

/// Prints a function of one number by the rule of --rule, and its exact value.
void run_arith_function(samebits::function of, const arith_arguments& arguments, output& out);

/// Refuses --rule beside an OP that is not a function.
///
/// @throws usage_error always
[[noreturn]] void refuse_rule_of(std::string_view op);

}  // namespace fpinspect
