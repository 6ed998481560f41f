// Calls of evaluate() and evaluate_gradient(): implementation of their common checks.
#include "backends/api/functions/function_call.hpp"

#include <bit>
#include <cfenv>
#include <cstdint>
#include <string>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits::backends {
namespace {

/// The parameter of a function that has one; 0 of all other functions.
double parameter_of(function f, const evaluate_options& options) {
  if (!has_parameter(f)) {
    refuse_if(options.parameter.has_value(), "parameter: ", f, " has no parameter");
    return 0;
  }
  if (options.parameter) return *options.parameter;
  refuse_if(f == function::pow, "parameter: pow needs its exponent");
  return f == function::elu ? 1 : 0.01;
}

void check_rule_has(function f, format_id format, function_rule rule, bool gradient) {
  require<unsupported>(
      numerics::has_function(rule, f, format) && (!gradient || rule == function_rule::torch_2_11),
      "rule ", rule, " has no ", gradient ? "gradient of " : "", f, " of ", format, " numbers");
}

/// Only the rule `exact` has another rounding than that of the rule's source.
void check_plain_rounding(const evaluate_options& options) {
  require(options.rounding == rounding::nearest_even && options.overflow == overflow::ieee,
          "options: rule ", options.rule,
          " has its own rounding; rounding and overflow are options of rule exact");
}

/// x - 1 in binary64, to nearest whatever the caller's rounding direction is. The whole environment
/// is restored: on x86 a direction in MXCSR alone is invisible to fegetround().
double minus_one(double x) {
  std::fenv_t environment;
  std::fegetenv(&environment);
  std::fesetround(FE_TONEAREST);
  const volatile double operand = x;  // computed here, not moved beyond the next call
  const volatile double difference = operand - 1;
  std::fesetenv(&environment);
  return difference;
}

constexpr int max_random_bits = 16;

/// The roundings that the rule `exact` has.
void check_exact_rounding(const evaluate_options& options, format_id to) {
  if (options.rounding == rounding::nearest_even) return;
  refuse_if<unsupported>(
      options.rounding != rounding::stochastic || to == format_id::fp32,
      "options.rounding: rule exact rounds into ", to,
      to == format_id::fp32 ? " to nearest even" : " to nearest even or stochastically", ", got ",
      options.rounding);
  refuse_if(options.random.bits > max_random_bits,
            "options.random.bits must be in 1..16 for functions, got ", options.random.bits,
            "; a random_stream has 32 by default, so write .random = {.seed = ..., "
            ".bits = 16}");
}

/// The call of the rule `exact`, after the checks of what only this rule refuses.
evaluate_call exact_call_of(function f, const const_matrix_view* grad, const const_matrix_view& in,
                            const matrix_view& out, const evaluate_options& options) {
  const bool gradient = grad != nullptr;
  const auto exact = numerics::real::find_exact(f, gradient);
  const auto check = [&](bool ok, const char* what, format_id format) {
    require<unsupported>(ok, "rule exact has no ", gradient ? "gradient of " : "", f, what, format,
                         " numbers");
  };
  check(exact && is_among(in.format, number_formats), " of ", in.format);
  if (gradient) check(is_among(grad->format, number_formats), " of ", grad->format);
  check(is_among(out.format, arithmetic_formats), " into ", out.format);
  check_exact_rounding(options, out.format);
  return {numerics::plan_of(function_rule::exact, f, in.format, 0, 0),
          in,
          gradient ? *grad : const_matrix_view{},
          out,
          *exact,
          {options.rounding, options.overflow},
          options.random,
          options.random.pitch.value_or(static_cast<std::uint64_t>(out.cols))};
}

}  // namespace

void check_function(function f, const evaluate_options& options) {
  check_value("f", f, "function");
  check_value("rule", options.rule, "function_rule");
  parameter_of(f, options);
  if (options.rule == function_rule::exact) {
    check_rule({options.rounding, options.overflow}, options.random);
  } else {
    check_plain_rounding(options);
  }
}

evaluate_call evaluate_call_of(function f, const const_matrix_view* grad,
                               const const_matrix_view& in, const matrix_view& out,
                               const evaluate_options& options) {
  if (options.rule == function_rule::exact) return exact_call_of(f, grad, in, out, options);
  // Only the rule `exact` has results in another format than the operand's.
  check_format_of(in, "in", out, "out");
  if (grad != nullptr) check_format_of(*grad, "grad", out, "out");
  check_rule_has(f, in.format, options.rule, grad != nullptr);
  const double parameter = parameter_of(f, options);
  const double lower = f == function::pow ? minus_one(parameter) : 0;
  return {numerics::plan_of(options.rule, f, in.format, std::bit_cast<std::uint64_t>(parameter),
                            std::bit_cast<std::uint64_t>(lower)),
          in, grad == nullptr ? const_matrix_view{} : *grad, out};
}

void run_functions(std::span<const evaluate_call> calls, memory_space space,
                   const executor& where) {
  const auto has = [](const backend& b) { return b.evaluate.run != nullptr; };
  const backend& chosen =
      backend_for(has, {space, calls.empty()}, where, "has no functions of arrays");
  for (const evaluate_call& call : calls) {
    if (!is_empty(call.out)) chosen.evaluate.run(call, where);
  }
}

}  // namespace samebits::backends
