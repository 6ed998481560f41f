// A check of a kernel that computes a function of every element.
#pragma once

#include "engine/kit/failed_call.hpp"
#include "samebits/evaluate.hpp"

namespace samebits::testkit {

/// Specification of the kernel under test: out[i] is the code of of(in[i]), by the options' rule.
struct function_under_test {
  function of;
  format_id format;  ///< of inputs and results: fp32, fp16 or bf16
  evaluate_options options;
  nan_result nan = nan_result::any;
  input_domain domain = {};
};

/// Results [codes] by samebits::evaluate() on backend "reference".
specification specification_of(const function_under_test& tested);

/// Amount of calls besides those of every check.
struct function_effort {
  int offsets = 1;   ///< inputs begin 0 .. offsets - 1 elements from a border
  int examples = 0;  ///< random calls
  std::uint64_t seed = 1;
};

/// Makes calls of special codes, numbers beside the borders of formulas, numbers of many magnitudes
/// and random codes; of every code of formats of 16 bits. Two calls have all of these, about 83,000
/// of fp32, the others 0 to 16384 elements.
check_outcome check_function_calls(const function_under_test& tested, const array_function& kernel,
                                   const function_effort& effort);

}  // namespace samebits::testkit
