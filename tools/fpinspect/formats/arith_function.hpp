// The part of `fpinspect arith` that evaluates functions.
#pragma once

#include "fpinspect/cli/command.hpp"
#include "samebits/core/function.hpp"

namespace fpinspect {

/// Prints a function of one number by the rule of --rule, and its exact value.
/// @param rule  empty if it is not given, which is refused
void run_arith_function(function of, const std::string& rule,
                        const std::vector<std::string>& operands, format_id format,
                        const session& s);

}  // namespace fpinspect
