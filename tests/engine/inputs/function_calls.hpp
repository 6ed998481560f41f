// Every call that evaluate() and evaluate_gradient() have: functions, rules, parameters, roundings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "numerics/functions/exact_functions.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/evaluate.hpp"

namespace samebits::support {

/// A function or its gradient, with a rule, on operands of some formats.
struct function_case {
  function of;
  bool gradient;
  evaluate_options options;
  std::vector<format_id> formats;  ///< of the operands
  std::vector<format_id> results;  ///< rule `exact`: of the result; else the operand's format
};

inline std::string text_of(const function_case& c) {
  return std::string(name(c.options.rule)) + (c.gradient ? " gradient of " : " ") +
         std::string(name(c.of)) + " " + std::string(name(c.options.rounding));
}

/// The cases of rule `exact`: to nearest even into all formats, stochastic into 16 and 8 bits.
inline std::vector<function_case> exact_function_cases() {
  using enum format_id;
  std::vector<function_case> cases;
  for (int i = 0; i < enum_count<function>; ++i) {
    for (const bool gradient : {false, true}) {
      if (!numerics::real::find_exact(static_cast<function>(i), gradient)) continue;
      const std::vector<format_id> operands = {fp32, fp16, bf16};
      cases.push_back(
          {static_cast<function>(i), gradient, {}, operands, {e4m3, fp32, bf16, fp16, e5m2}});
      cases.push_back({static_cast<function>(i),
                       gradient,
                       {.rounding = rounding::stochastic,
                        .overflow = overflow::saturate,
                        .random = {.seed = 5, .stream = 3, .offset = 70, .bits = 16}},
                       operands,
                       {bf16, e5m2, fp16, e4m3}});
    }
  }
  return cases;
}

/// The cases of all other rules, with parameters that choose different kernels of pow.
inline std::vector<function_case> other_function_cases() {
  using enum format_id;
  std::vector<function_case> cases;
  for (int r = 0; r < enum_count<function_rule>; ++r) {
    const function_rule rule = static_cast<function_rule>(r);
    if (rule == function_rule::exact) continue;
    for (int i = 0; i < enum_count<function>; ++i) {
      const function f = static_cast<function>(i);
      std::vector<format_id> formats;
      for (const format_id format : {fp32, fp16, bf16}) {
        if (numerics::has_function(rule, f, format)) formats.push_back(format);
      }
      if (formats.empty()) continue;
      std::vector<std::optional<double>> parameters = {std::nullopt};
      if (has_parameter(f)) parameters = {0.3};
      if (f == function::pow) parameters = {0.5, 2, 1.7};
      for (const auto& parameter : parameters) {
        const evaluate_options options{.rule = rule, .parameter = parameter};
        cases.push_back({f, false, options, formats, formats});
        if (rule == function_rule::torch_2_11)
          cases.push_back({f, true, options, formats, formats});
      }
    }
  }
  return cases;
}

inline std::vector<function_case> function_cases() {
  std::vector<function_case> all = exact_function_cases();
  const std::vector<function_case> others = other_function_cases();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

/// Calls evaluate(), or evaluate_gradient() with `grad`. Matrices and tensor lists alike.
template <class In, class Out>
void run_function(const function_case& c, const In& grad, const In& in, const Out& out,
                  const executor& where) {
  if (c.gradient) {
    evaluate_gradient(c.of, grad, in, out, c.options, where);
  } else {
    evaluate(c.of, in, out, c.options, where);
  }
}

}  // namespace samebits::support
