// softmax(), log_softmax(), layer_norm() and their gradients: check arguments and choose a backend.
#include "backends/dispatch/calls/row_functions.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "backends/api/view_checks.hpp"
#include "numerics/hardware/torch_operators/power.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

void check_row_rule(function_rule rule, row_function f, const char* what, format_id format) {
  check_value("rule", rule, "function_rule");
  const bool has_format =
      format == format_id::fp32 || format == format_id::fp16 || format == format_id::bf16;
  const bool has_function = rule == function_rule::torch_2_11 ||
                            (rule == function_rule::triton_3_6 && f == row_function::softmax);
  if (has_format && has_function) return;
  throw unsupported("rule " + std::string(name(rule)) + " has no " + what + " of " +
                    std::string(name(format)) + " numbers");
}

void check_offset(std::int64_t offset) {
  if (offset >= 0) return;
  throw invalid_argument("offset: must be at least 0, got " + std::to_string(offset));
}

/// What rules use of a checked offset: its remainder by the elements in 16 bytes, 4 or 8. A
/// remainder leaves room for the elements that a backend adds.
std::int64_t offset_in_vector(std::int64_t offset) { return offset % 8; }

bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

void check_block(const softmax_options& options) {
  const int warps = options.num_warps, elements = options.elements_per_thread;
  if (!is_power_of_two(warps) || warps > 32) {
    throw invalid_argument("num_warps: must be a power of two from 1 to 32, got " +
                           std::to_string(warps));
  }
  if (elements != 0 && (!is_power_of_two(elements) || elements > 8)) {
    throw invalid_argument("elements_per_thread: must be 0, 1, 2, 4 or 8, got " +
                           std::to_string(elements));
  }
}

/// Checks a view of rows that the call reads beside `out`.
void check_rows(const const_matrix_view& v, const char* which, const matrix_view& out) {
  check_view(v, which);
  if (v.rows != out.rows || v.cols != out.cols) {
    throw invalid_argument(std::string(which) + ": shape must be that of out, " +
                           shape_text(out.rows, out.cols) + ", got " + shape_text(v.rows, v.cols));
  }
  if (v.format != out.format) {
    throw invalid_argument(std::string(which) + ": format must be that of out, " +
                           std::string(name(out.format)) + ", got " + std::string(name(v.format)));
  }
  if (v.space != out.space) {
    throw invalid_argument(std::string(which) +
                           ": must lie in the same memory as out, host or device");
  }
  check_overlap(v, which, out);
}

struct expected_shape {
  std::int64_t rows;
  std::int64_t cols;
  format_id format;
};

/// Checks a view [1, cols] or [rows, 1] beside `out`, unless it has no data.
void check_vector(const const_matrix_view& v, const char* which, const expected_shape& expected,
                  const matrix_view& out) {
  if (v.data == nullptr) return;
  check_view(v, which);
  if (v.rows != expected.rows || v.cols != expected.cols) {
    throw invalid_argument(std::string(which) + ": shape must be " +
                           shape_text(expected.rows, expected.cols) + ", got " +
                           shape_text(v.rows, v.cols));
  }
  if (v.format != expected.format) {
    throw invalid_argument(std::string(which) + ": format must be " +
                           std::string(name(expected.format)) + ", got " +
                           std::string(name(v.format)));
  }
  if (v.space != out.space) {
    throw invalid_argument(std::string(which) +
                           ": must lie in the same memory as out, host or device");
  }
  check_apart(v, which, out, "out");
}

void check_out(const matrix_view& out) {
  check_view(out, "out");
  check_distinct(out, "out");
}

void run_rows(const row_call& call, const executor& where) {
  check_threads(where);
  const auto has = [&](const backend& b) { return b.row_functions.has(call); };
  const backend& chosen = resolve(where, call.out.space, has);
  check_memory(chosen, call.out.space);
  if (!has(chosen)) {
    throw unsupported("backend '" + std::string(chosen.name) + "' has no functions of rows");
  }
  if (!is_empty(call.out)) chosen.row_functions.run(call, where);
}

void run_softmax(row_function f, const char* what, const const_matrix_view& in,
                 const matrix_view& out, const softmax_options& options, const executor& where) {
  check_out(out);
  check_rows(in, "in", out);
  check_offset(options.offset);
  check_block(options);
  check_row_rule(options.rule, f, what, out.format);
  const int elements = options.elements_per_thread;
  run_rows({.of = f,
            .rule = options.rule,
            .offset = offset_in_vector(options.offset),
            .num_warps = options.num_warps,
            .elements_per_thread =
                elements == 0 ? numerics::torch_2_11::vector_of(out.format) : elements,
            .in = in,
            .out = out},
           where);
}

void run_softmax_gradient(row_function f, const char* what, const const_matrix_view& grad,
                          const const_matrix_view& result, const matrix_view& out,
                          const softmax_options& options, const executor& where) {
  check_out(out);
  check_rows(grad, "grad", out);
  check_rows(result, "result", out);
  check_offset(options.offset);
  check_block(options);
  check_row_rule(options.rule, f, what, out.format);
  const std::int64_t offset =
      f == row_function::softmax_gradient ? 0 : offset_in_vector(options.offset);
  run_rows({.of = f, .offset = offset, .grad = grad, .in = result, .out = out}, where);
}

/// Checks a result [rows, 1] that layer_norm() writes.
void check_statistic(const matrix_view& v, const char* which, const matrix_view& out) {
  if (v.data == nullptr) return;
  check_vector(v, which, {out.rows, 1, format_id::fp32}, out);
  check_distinct(v, which);
}

void check_given(const const_matrix_view& v, const char* which, const matrix_view& out) {
  if (v.data == nullptr && out.rows > 0) {
    throw invalid_argument(std::string(which) + ": data must not be null");
  }
  check_vector(v, which, {out.rows, 1, format_id::fp32}, out);
}

std::uint32_t epsilon_of(double epsilon) {
  return numerics::torch_2_11::narrow(std::bit_cast<std::uint64_t>(epsilon));
}

/// The views of a norm; those that it lacks have no data.
template <class Statistic>
struct norm_views {
  const const_matrix_view& in;
  const const_matrix_view& weight;
  const const_matrix_view& bias;
  const matrix_view& out;
  const Statistic& mean;
  const Statistic& rstd;
};

void run_norm(row_function f, const norm_views<matrix_view>& v, const layer_norm_options& options,
              const executor& where) {
  check_out(v.out);
  check_rows(v.in, "in", v.out);
  check_vector(v.weight, "weight", {1, v.out.cols, v.out.format}, v.out);
  check_vector(v.bias, "bias", {1, v.out.cols, v.out.format}, v.out);
  check_statistic(v.mean, "mean", v.out);
  check_statistic(v.rstd, "rstd", v.out);
  const std::pair<const matrix_view*, const char*> written[] = {{&v.mean, "mean"},
                                                                {&v.rstd, "rstd"}};
  for (const auto& [view, which] : written) {
    if (view->data == nullptr) continue;
    check_apart(v.in, "in", *view, which);
    if (v.weight.data != nullptr) check_apart(v.weight, "weight", *view, which);
    if (v.bias.data != nullptr) check_apart(v.bias, "bias", *view, which);
  }
  if (v.mean.data != nullptr && v.rstd.data != nullptr) check_apart(v.mean, "mean", v.rstd, "rstd");
  check_offset(options.offset);
  check_row_rule(options.rule, f, f == row_function::layer_norm ? "layer_norm" : "rms_norm",
                 v.out.format);
  run_rows({.of = f,
            .epsilon = epsilon_of(options.epsilon),
            .offset = offset_in_vector(options.offset),
            .in = v.in,
            .weight = v.weight,
            .bias = v.bias,
            .mean = v.mean,
            .rstd = v.rstd,
            .out = v.out},
           where);
}

void run_norm_gradient(row_function f, const const_matrix_view& grad,
                       const norm_views<const_matrix_view>& v, const layer_norm_options& options,
                       const executor& where) {
  check_rows(grad, "grad", v.out);
  check_rows(v.in, "in", v.out);
  check_given(v.rstd, "rstd", v.out);
  check_vector(v.weight, "weight", {1, v.out.cols, v.out.format}, v.out);
  check_offset(options.offset);
  check_row_rule(
      options.rule, f,
      f == row_function::layer_norm_gradient ? "gradient of layer_norm" : "gradient of rms_norm",
      v.out.format);
  run_rows({.of = f,
            .grad = grad,
            .in = v.in,
            .weight = v.weight,
            .mean = v.mean,
            .rstd = v.rstd,
            .out = v.out},
           where);
}

}  // namespace
}  // namespace backends

using backends::row_function;

void softmax(const const_matrix_view& in, const matrix_view& out, const softmax_options& options,
             const executor& where) {
  backends::run_softmax(row_function::softmax, "softmax", in, out, options, where);
}

void log_softmax(const const_matrix_view& in, const matrix_view& out,
                 const softmax_options& options, const executor& where) {
  backends::run_softmax(row_function::log_softmax, "log_softmax", in, out, options, where);
}

void softmax_gradient(const const_matrix_view& grad, const const_matrix_view& result,
                      const matrix_view& out, const softmax_options& options,
                      const executor& where) {
  backends::run_softmax_gradient(row_function::softmax_gradient, "gradient of softmax", grad,
                                 result, out, options, where);
}

void log_softmax_gradient(const const_matrix_view& grad, const const_matrix_view& result,
                          const matrix_view& out, const softmax_options& options,
                          const executor& where) {
  backends::run_softmax_gradient(row_function::log_softmax_gradient, "gradient of log_softmax",
                                 grad, result, out, options, where);
}

void layer_norm(const const_matrix_view& in, const const_matrix_view& weight,
                const const_matrix_view& bias, const matrix_view& out, const matrix_view& mean,
                const matrix_view& rstd, const layer_norm_options& options, const executor& where) {
  backends::run_norm(row_function::layer_norm, {in, weight, bias, out, mean, rstd}, options, where);
}

void rms_norm(const const_matrix_view& in, const const_matrix_view& weight, const matrix_view& out,
              const matrix_view& rstd, const layer_norm_options& options, const executor& where) {
  backends::run_norm(row_function::rms_norm, {in, weight, {}, out, {}, rstd}, options, where);
}

void layer_norm_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                         const const_matrix_view& mean, const const_matrix_view& rstd,
                         const const_matrix_view& weight, const matrix_view& out,
                         const layer_norm_options& options, const executor& where) {
  backends::check_out(out);
  backends::check_given(mean, "mean", out);
  backends::run_norm_gradient(row_function::layer_norm_gradient, grad,
                              {in, weight, {}, out, mean, rstd}, options, where);
}

void rms_norm_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                       const const_matrix_view& rstd, const const_matrix_view& weight,
                       const matrix_view& out, const layer_norm_options& options,
                       const executor& where) {
  backends::check_out(out);
  backends::run_norm_gradient(row_function::rms_norm_gradient, grad,
                              {in, weight, {}, out, {}, rstd}, options, where);
}

}  // namespace samebits
