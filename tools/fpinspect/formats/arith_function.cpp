// `fpinspect arith FUNCTION X --rule RULE`: a function of one number by a rule, beside its exact
// value.

#include "fpinspect/formats/arith_function.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/error.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/text.hpp"
#include "samebits/view.hpp"

namespace fpinspect {
namespace {

using wide = long double;

struct function_task {
  function of;
  format_id format;
  std::string text;        ///< of the operand
  std::uint64_t code = 0;  ///< of the operand, in `format`
  bool inexact = false;    ///< the text was rounded to the code
  evaluate_options options = {};
};

/// Refuses another number of operands than the function's.
void check_operand_count(function of, std::size_t count) {
  const bool needs_parameter = of == function::pow;
  const std::size_t most = has_parameter(of) ? 2 : 1;
  if (count <= most && count >= (needs_parameter ? 2 : 1)) return;
  const std::string got = number_of(count, "operand");
  if (needs_parameter) throw usage_error("pow takes a number and its exponent, got ", got);
  throw usage_error(of, " takes one number", most == 2 ? " and its parameter" : "", ", got ", got);
}

function_task task_of(function of, const std::string& rule,
                      const std::vector<std::string>& operands, format_id format) {
  refuse_if(rule.empty(), "--rule: needed for ", of, ", for example --rule cuda_13_0");
  function_task task{of, format, operands[0]};
  task.options.rule = enumerator_argument<function_rule>("--rule", rule);
  check_operand_count(of, operands.size());
  if (operands.size() == 2) {
    const parse_result parsed = parse(format_id::fp64, operands[1]);
    if (!parsed.ok) refuse_value("parameter", operands[1], "is not a number");
    task.options.parameter = std::bit_cast<double>(parsed.code);
  }
  const parse_result parsed = parse(task.format, task.text);
  refuse_value_if(!parsed.ok, "A", task.text,
                  "is not a number; functions take one number, and files only in Python: "
                  "samebits.evaluate()");
  task.code = parsed.code;
  task.inexact = parsed.inexact;
  return task;
}

std::uint64_t result_of(const function_task& task) {
  std::array<std::byte, 8> in{}, out{};
  const auto bytes = static_cast<std::size_t>(storage_bytes(task.format));
  store_code(in.data(), bytes, task.code);
  const void* const from = in.data();
  samebits::evaluate(task.of, view_of_codes(task.format, from, 1, 1),
                     view_of_codes(task.format, static_cast<void*>(out.data()), 1, 1), task.options,
                     {.backend = "reference"});
  return load_code(out.data(), bytes);
}

/// The rules that have the function for the format, as evaluate() says.
std::string rules_with(function_task task) {
  std::string names;
  for (const auto& [rule, rule_name, doc] : table_of<function_rule>) {
    task.options.rule = rule;
    try {
      static_cast<void>(result_of(task));
    } catch (const unsupported&) {
      continue;
    }
    names += cat(names.empty() ? "" : ", ", rule_name);
  }
  return names.empty() ? "no rule has it" : "rules that have it: " + names;
}

/// @throws usage_error  if the rule lacks the function for the format
std::uint64_t result_or_refusal(const function_task& task) {
  try {
    return result_of(task);
  } catch (const unsupported& error) {
    throw usage_error("--rule: ", error.what(), "; ", rules_with(task));
  }
}

wide sigmoid(wide x) { return 1 / (1 + std::exp(-x)); }
wide softplus(wide x) { return x > 40 ? x : std::log1p(std::exp(x)); }

/// The functions whose value tends to -0 as x tends to -infinity. Their formulas are -Inf * 0 there.
bool vanishes_at_minus_infinity(function of) {
  return of == function::silu || of == function::gelu || of == function::gelu_tanh ||
         of == function::mish || of == function::hardswish;
}

/// The function's value in long double, whose errors are far below an ulp of the formats.
wide exact_value(const function_task& task, wide x) {
  if (std::isinf(x) && x < 0 && vanishes_at_minus_infinity(task.of)) return -0.0L;
  constexpr wide pi = 3.141592653589793238462643383279502884L;
  const wide p = task.options.parameter.value_or(task.of == function::elu ? 1 : 0.01);
  switch (task.of) {
    case function::exp:
    case function::fast_exp: return std::exp(x);
    case function::exp2: return std::exp2(x);
    case function::expm1: return std::expm1(x);
    case function::log:
    case function::fast_log: return std::log(x);
    case function::log2: return std::log2(x);
    case function::log10: return std::log10(x);
    case function::log1p: return std::log1p(x);
    case function::sin: return std::sin(x);
    case function::cos: return std::cos(x);
    case function::tanh: return std::tanh(x);
    case function::erf: return std::erf(x);
    case function::erfc: return std::erfc(x);
    case function::pow: return std::pow(x, p);
    case function::rsqrt: return 1 / std::sqrt(x);
    case function::reciprocal: return 1 / x;
    case function::sigmoid: return sigmoid(x);
    case function::silu: return x * sigmoid(x);
    case function::gelu: return x * std::erfc(-x / std::sqrt(wide{2})) / 2;
    case function::gelu_tanh: {
      const wide inner = std::sqrt(2 / pi) * (x + wide{0.044715L} * x * x * x);
      return x * sigmoid(2 * inner);  // (1 + tanh(y)) / 2 = sigmoid(2 y)
    }
    case function::softplus: return softplus(x);
    case function::elu: return x > 0 ? x : p * std::expm1(x);
    case function::relu: return x <= 0 ? 0 : x;  // NaN stays NaN
    case function::leaky_relu: return x > 0 ? x : p * x;
    case function::mish: return x * std::tanh(softplus(x));
    case function::hardswish: return x * std::fmin(std::fmax(x + 3, wide{0}), wide{6}) / 6;
  }
  return x;
}

std::string exact_text(wide value) {
  if (std::isnan(value)) return "nan";  // without a sign
  char text[64];
  std::snprintf(text, sizeof text, "%.17Lg", value);
  return text;
}

/// The distance of the result from the exact value in ulp, the spacing of the format at the exact
/// value; empty for NaN, Inf and 0.
std::string distance_text(format_id format, double result, wide exact) {
  if (!std::isfinite(result) || !std::isfinite(exact) || exact == 0) return {};
  const format_spec f = spec_of(format);
  const int exponent = std::max(std::ilogb(exact), 1 - f.bias);  // that of min normal or more
  const wide ulp = std::ldexp(wide{1}, exponent - f.mantissa_bits);
  char text[64];
  std::snprintf(text, sizeof text, "%.3Lf", (result - exact) / ulp);
  return text;
}

}  // namespace

void run_arith_function(function of, const std::string& rule,
                        const std::vector<std::string>& operands, format_id format,
                        const session& s) {
  const function_task task = task_of(of, rule, operands, format);
  const std::uint64_t result = result_or_refusal(task);
  const wide exact = exact_value(task, decode_double(task.format, task.code));
  const std::string distance =
      distance_text(task.format, decode_double(task.format, result), exact);
  const std::string beside = distance.empty() ? "" : cat("error ", distance, " ulp");
  s.write(
      {{"function", name(of)},
       {"format", name(task.format)},
       {"rule", name(task.options.rule)},
       {"input", task.text},
       {"operand", code_text(task.format, task.code)},
       {"result", code_text(task.format, result)},
       {"value", to_shortest(task.format, result)},
       {"exact", exact_text(exact)},
       {"error_ulp", distance}},
      cat(number_line(left("A", 11), task.format, task.code,
                      task.inexact ? "rounded from " + escape(task.text, 60) : ""),
          number_line(left(name(of), 11), task.format, result, cat("rule ", task.options.rule)),
          without_end_blanks(cat(left("exact", 29), left(exact_text(exact), 26), beside)), "\n"));
}

}  // namespace fpinspect
