// Reference functions of arrays: applies the definition to one element after another, or to all
// operands of a table.
#include "backends/dispatch/calls/evaluate.hpp"

#include <cstdint>

#include "backends/reference/functions/function_range.hpp"
#include "backends/reference/functions/result_table.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/functions/exact_function.hpp"

namespace samebits::backends {
namespace {

namespace real = numerics::real;

void reference_codes(const evaluate_call& call, function_chunk& chunk, int count) {
  for (int i = 0; i < count; ++i) {
    chunk.codes[i] = call.grad.data == nullptr
                         ? numerics::evaluate_code(call.plan, chunk.x[i])
                         : numerics::evaluate_gradient_code(call.plan, chunk.grad[i], chunk.x[i]);
  }
}

std::uint64_t number_of(format_id format, std::uint32_t code) {
  return numerics::decode<std::uint64_t>(spec_of(format), code);
}

void exact_codes(const evaluate_call& call, function_chunk& chunk, int count) {
  const bool stochastic = call.rule.rounding == rounding::stochastic;
  real::with_function(call.exact, [&]<real::exact_function F>() {
    for (int i = 0; i < count; ++i) {
      std::uint64_t y = real::value_at<F>(number_of(call.in.format, chunk.x[i]));
      if (call.grad.data != nullptr) {
        const std::uint64_t d = numerics::binary64::widen(static_cast<std::uint32_t>(
            real::destination_code(spec_of(format_id::fp32), cast_rule{}, y, std::uint64_t{0})));
        y = real::gradient_product(number_of(call.grad.format, chunk.grad[i]), d);
      }
      const std::uint64_t dither = stochastic ? chunk.dither[i] : 0;
      chunk.codes[i] = static_cast<std::uint32_t>(
          real::destination_code(spec_of(call.out.format), call.rule, y, dither));
    }
  });
}

}  // namespace

void evaluate_on_threads(const evaluate_call& call, const executor& where, function_codes codes,
                         kernel_scope scope) {
  if (evaluate_by_table(call, where, codes, scope)) return;
  for_each_part(call.out.rows * call.out.cols, where.threads, [&](element_range range) {
    run_in(scope, [&] { function_range(call, range, codes); });
  });
}

void reference_evaluate(const evaluate_call& call, const executor& where) {
  evaluate_on_threads(call, where, call.is_exact() ? exact_codes : reference_codes, in_any_state);
}

}  // namespace samebits::backends
