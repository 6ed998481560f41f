// evaluate() and evaluate_gradient(): check arguments and choose a backend.
#include "backends/dispatch/evaluate.hpp"

#include <bit>
#include <cfenv>
#include <cstdint>
#include <string>

#include "backends/api/exact_function.hpp"
#include "backends/api/view_checks.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

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

void check_function(function f, const const_matrix_view& in, function_rule rule, bool gradient) {
  const bool has = numerics::has_function(rule, f, in.format) &&
                   (!gradient || rule == function_rule::torch_2_11);
  if (has) return;
  throw unsupported("rule " + std::string(name(rule)) + " has no " +
                    (gradient ? "gradient of " : "") + std::string(name(f)) + " of " +
                    std::string(name(in.format)) + " numbers");
}

/// Only the rule `exact` has results in another format than the operand's.
void check_format(const const_matrix_view& v, const char* which, const matrix_view& out) {
  if (v.format == out.format) return;
  throw invalid_argument(std::string(which) + ": format must be that of out, " +
                         std::string(name(out.format)) + ", got " + std::string(name(v.format)));
}

/// Only the rule `exact` has another rounding than that of the rule's source.
void check_plain_rounding(const evaluate_options& options) {
  const bool plain =
      options.round == rounding::nearest_even && options.on_overflow == overflow::ieee;
  if (plain) return;
  throw invalid_argument("options: rule " + std::string(name(options.rule)) +
                         " has its own rounding; round and on_overflow are options of rule exact");
}

void check_argument(const const_matrix_view& v, const char* which, const matrix_view& out) {
  check_view(v, which);
  if (v.rows != out.rows || v.cols != out.cols) {
    throw invalid_argument(std::string(which) + ": shape must be that of out, " +
                           shape_text(out.rows, out.cols) + ", got " + shape_text(v.rows, v.cols));
  }
  if (v.space != out.space) {
    throw invalid_argument(std::string(which) +
                           ": must lie in the same memory as out, host or device");
  }
  check_overlap(v, which, out);
}

const backend& evaluating_backend(const evaluate_call& call, const executor& where) {
  const auto has = [&](const backend& b) { return b.evaluate.has(call); };
  const backend& chosen = resolve(where, call.out.space, has);
  check_memory(chosen, call.out.space);
  if (has(chosen)) return chosen;
  throw unsupported("backend '" + std::string(chosen.name) + "' has no functions of arrays");
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

void run_function(function f, const const_matrix_view* grad, const const_matrix_view& in,
                  const matrix_view& out, const evaluate_options& options, const executor& where) {
  check_value("f", f, function_count, "function");
  check_value("rule", options.rule, function_rule_count, "function_rule");
  check_view(out, "out");
  check_distinct(out, "out");
  check_argument(in, "in", out);
  if (grad != nullptr) check_argument(*grad, "grad", out);
  const double parameter = parameter_of(f, options);
  if (options.rule == function_rule::exact) return run_exact(f, grad, in, out, options, where);
  check_format(in, "in", out);
  if (grad != nullptr) check_format(*grad, "grad", out);
  check_plain_rounding(options);
  check_function(f, in, options.rule, grad != nullptr);
  check_threads(where);
  const evaluate_call call{
      numerics::plan_of(options.rule, f, in.format, std::bit_cast<std::uint64_t>(parameter),
                        std::bit_cast<std::uint64_t>(minus_one(parameter))),
      in, grad == nullptr ? const_matrix_view{} : *grad, out};
  const device_scope on(
      out.space,
      {{address_of(out), "out"}, {address_of(in), "in"}, {address_of(call.grad), "grad"}},
      where.stream);
  const backend& chosen = evaluating_backend(call, where);
  if (!is_empty(out)) chosen.evaluate.run(call, where);
}

}  // namespace
}  // namespace backends

void evaluate(function f, const const_matrix_view& in, const matrix_view& out,
              const evaluate_options& options, const executor& where) {
  backends::run_function(f, nullptr, in, out, options, where);
}

void evaluate_gradient(function f, const const_matrix_view& grad, const const_matrix_view& in,
                       const matrix_view& out, const evaluate_options& options,
                       const executor& where) {
  backends::run_function(f, &grad, in, out, options, where);
}

}  // namespace samebits
