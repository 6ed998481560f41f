// Reference functions of arrays: applies the definition to one element after another.
#include "backends/dispatch/calls/evaluate.hpp"

#include <cstdint>

#include "backends/reference/reference.hpp"

namespace samebits::backends {
namespace {

void reference_codes(const numerics::function_plan& plan, const std::uint32_t* grad,
                     std::uint32_t* codes, int count) {
  for (int i = 0; i < count; ++i) {
    codes[i] = grad == nullptr ? numerics::evaluate_code(plan, codes[i])
                               : numerics::evaluate_gradient_code(plan, grad[i], codes[i]);
  }
}

}  // namespace

void reference_evaluate(const evaluate_call& call, element_range range) {
  evaluate_range(call, range, reference_codes);
}

}  // namespace samebits::backends
