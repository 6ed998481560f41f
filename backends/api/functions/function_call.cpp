// Calls of evaluate() and evaluate_gradient(): implementation of their common checks.
#include "backends/api/functions/function_call.hpp"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cstdint>
#include <string>

#include "backends/api/functions/exact_function.hpp"
#include "backends/api/view_checks.hpp"
#include "samebits/error.hpp"

namespace samebits::backends {
namespace {

/// The parameter of a function that has one; 0 of all other functions.
double parameter_of(function f, const evaluate_options& options) {
  if (!has_parameter(f)) {
    if (options.parameter) {
      throw invalid_argument("parameter: " + std::string(name(f)) + " has no parameter");
    }
    return 0;
  }
  if (options.parameter) return *options.parameter;
  if (f == function::pow) throw invalid_argument("parameter: pow needs its exponent");
  return f == function::elu ? 1 : 0.01;
}

void check_rule_has(function f, format_id format, function_rule rule, bool gradient) {
  const bool has =
      numerics::has_function(rule, f, format) && (!gradient || rule == function_rule::torch_2_11);
  if (has) return;
  throw unsupported("rule " + std::string(name(rule)) + " has no " +
                    (gradient ? "gradient of " : "") + std::string(name(f)) + " of " +
                    std::string(name(format)) + " numbers");
}

/// Only the rule `exact` has results in another format than the operand's.
void check_same_format(const const_matrix_view& v, const char* which, const matrix_view& out) {
  if (v.format == out.format) return;
  throw invalid_argument(std::string(which) + ": format must be that of out, " +
                         std::string(name(out.format)) + ", got " + std::string(name(v.format)));
}

/// Only the rule `exact` has another rounding than that of the rule's source.
void check_plain_rounding(const evaluate_options& options) {
  const bool plain =
      options.rounding == rounding::nearest_even && options.overflow == overflow::ieee;
  if (plain) return;
  throw invalid_argument("options: rule " + std::string(name(options.rule)) +
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

bool has_call(const backend& b, const function_call& call) {
  if (const auto* const exact = std::get_if<exact_call>(&call)) return b.exact.has(*exact);
  return b.evaluate.has(std::get<evaluate_call>(call));
}

void run_call(const backend& b, const function_call& call, const executor& where) {
  if (const auto* const exact = std::get_if<exact_call>(&call)) {
    if (!is_empty(exact->out)) b.exact.run(*exact, where);
    return;
  }
  const auto& other = std::get<evaluate_call>(call);
  if (!is_empty(other.out)) b.evaluate.run(other, where);
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

function_call function_call_of(function f, const const_matrix_view* grad,
                               const const_matrix_view& in, const matrix_view& out,
                               const evaluate_options& options) {
  if (options.rule == function_rule::exact) return exact_call_of(f, grad, in, out, options);
  check_same_format(in, "in", out);
  if (grad != nullptr) check_same_format(*grad, "grad", out);
  check_rule_has(f, in.format, options.rule, grad != nullptr);
  const double parameter = parameter_of(f, options);
  return evaluate_call{
      numerics::plan_of(options.rule, f, in.format, std::bit_cast<std::uint64_t>(parameter),
                        std::bit_cast<std::uint64_t>(minus_one(parameter))),
      in, grad == nullptr ? const_matrix_view{} : *grad, out};
}

void run_functions(std::span<const function_call> calls, memory_space space,
                   const executor& where) {
  const auto has = [&](const backend& b) {
    return std::ranges::all_of(calls, [&](const function_call& call) { return has_call(b, call); });
  };
  const backend& chosen = resolve(where, space, has);
  if (!calls.empty()) check_memory(chosen, space);  // an empty list has no memory to check
  if (!has(chosen)) {
    throw unsupported("backend '" + std::string(chosen.name) + "' has no functions of arrays");
  }
  for (const function_call& call : calls) run_call(chosen, call, where);
}

}  // namespace samebits::backends
