// Calls of evaluate() and evaluate_gradient() by the rule `exact`: implementation.
#include "backends/api/functions/exact_function.hpp"

#include <string>

#include "backends/api/view_checks.hpp"
#include "samebits/error.hpp"

namespace samebits::backends {
namespace {

constexpr int max_random_bits = 16;

bool is_operand(format_id format) {
  return format == format_id::fp32 || format == format_id::fp16 || format == format_id::bf16;
}

bool is_destination(format_id format) {
  return is_operand(format) || format == format_id::e4m3 || format == format_id::e5m2;
}

[[noreturn]] void refuse_format(function f, bool gradient, const char* what, format_id format) {
  throw unsupported("rule exact has no " + std::string(gradient ? "gradient of " : "") +
                    std::string(name(f)) + what + std::string(name(format)) + " numbers");
}

void check_rounding(const evaluate_options& options, format_id to) {
  if (options.rounding == rounding::nearest_even) return;
  if (options.rounding != rounding::stochastic || to == format_id::fp32) {
    throw unsupported(
        "options.rounding: rule exact rounds into " + std::string(name(to)) +
        (to == format_id::fp32 ? " to nearest even" : " to nearest even or stochastically") +
        ", got " + std::string(name(options.rounding)));
  }
  if (options.random.bits > max_random_bits) {
    throw invalid_argument("options.random.bits must be in 1..16 for functions, got " +
                           std::to_string(options.random.bits) +
                           "; a random_stream has 32 by default, so write .random = {.seed = ..., "
                           ".bits = 16}");
  }
}

}  // namespace

exact_call exact_call_of(function f, const const_matrix_view* grad, const const_matrix_view& in,
                         const matrix_view& out, const evaluate_options& options) {
  const bool gradient = grad != nullptr;
  const auto exact = numerics::real::find_exact(f, gradient);
  if (!exact || !is_operand(in.format)) refuse_format(f, gradient, " of ", in.format);
  if (gradient && !is_operand(grad->format)) refuse_format(f, gradient, " of ", grad->format);
  if (!is_destination(out.format)) refuse_format(f, gradient, " into ", out.format);
  check_rounding(options, out.format);
  return {*exact,
          in,
          gradient ? *grad : const_matrix_view{},
          out,
          {options.rounding, options.overflow},
          options.random,
          options.random.pitch.value_or(static_cast<std::uint64_t>(out.cols))};
}

}  // namespace samebits::backends
