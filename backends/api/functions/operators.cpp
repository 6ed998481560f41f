// Fused operators: check arguments and choose a backend.
#include "samebits/operators.hpp"

#include <bit>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

#include "backends/api/functions/row_calls.hpp"
#include "backends/api/functions/sum_checks.hpp"
#include "backends/dispatch/calls/fused.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "numerics/hardware/torch_operators/power.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

using torch::fused;

/// Checks the views of a call in turn, then runs it. The first result has the shape, format and
/// memory of all others.
class checked_call {
 public:
  /// A result and its name in messages.
  using result = std::pair<const matrix_view&, const char*>;

  checked_call(const torch::fused_plan& plan, std::initializer_list<result> results)
      : call_{.plan = plan} {
    for (const auto& [view, name] : results) {
      check_view(view, name);
      check_distinct(view, name);
      for (int i = 0; i < results_; ++i) {
        check_shape_of(view, name, call_.out[i], result_names_[i]);
        check_like_result(view, name);
        check_apart(call_.out[i], result_names_[i], view, name);
      }
      call_.out[results_] = view;
      result_names_[results_++] = name;
    }
    call_.plan.f.format = call_.out[0].format;
  }

  /// An operand in the shape of the results; may have the elements of one.
  void add(const const_matrix_view& view, const char* name) {
    check_view(view, name);
    check_shape_of(view, name, call_.out[0], result_names_[0]);
    check_like_result(view, name);
    for (int i = 0; i < results_; ++i) {
      if (are_same_elements(view, call_.out[i])) continue;
      check_apart(view, name, call_.out[i], result_names_[i]);
    }
    push({view}, name);
  }
  /// An operand whose rows repeat; apart from the results.
  void add_rows(const fused_operand& v, const char* name) {
    const matrix_view& out = call_.out[0];
    check_view(v.view, name);
    check_like_result(v.view, name);
    check_shape(v.view, name, v.view.rows, out.cols);
    if (v.view.rows == 0 && !is_empty(out)) {
      throw invalid_argument(std::string(name) + ": must have rows");
    }
    for (int i = 0; i < results_; ++i) check_apart(v.view, name, call_.out[i], result_names_[i]);
    push(v, name);
  }
  /// The random bits of dropout.
  void set_random(const random_stream& random) {
    call_.random = random;
    call_.random.bits = torch::dropout_bits;
    call_.pitch = random.pitch.value_or(static_cast<std::uint64_t>(call_.out[0].cols));
  }

  void run(const executor& where) const {
    const matrix_view& out = call_.out[0];
    check_torch_rule(function_rule::torch_2_11, "fused operators", out.format);
    device_finder memory(out.space);
    for (int i = 0; i < results_; ++i) memory.add(address_of(call_.out[i]), result_names_[i]);
    for (int i = 0; i < operands_; ++i) {
      memory.add(address_of(call_.in[i].view), operand_names_[i]);
      memory.add(call_.in[i].indices, "indices");
    }
    const device_scope on(out.space, memory.device(), where.stream);
    const backend& chosen = backend_for(
        where, out.space, [&](const backend& b) { return b.fused.has(call_); },
        "has no fused operators");
    if (!is_empty(out)) chosen.fused.run(call_, where);
  }

 private:
  void check_like_result(const const_matrix_view& view, const char* name) const {
    check_format_of(view, name, call_.out[0], result_names_[0]);
    check_space_of(view, name, call_.out[0], result_names_[0]);
  }
  void push(const fused_operand& v, const char* name) {
    call_.in[operands_] = v;
    operand_names_[operands_++] = name;
  }

  fused_call call_;
  int operands_ = 0, results_ = 0;
  const char* operand_names_[max_fused_operands] = {};
  const char* result_names_[max_fused_results] = {};
};

/// The plan of gated() or biased(); checks the function and the rule.
torch::fused_plan plan_of(fused of, function f, function_rule rule, const const_matrix_view& out) {
  check_value("function", f, "function");
  const std::string what =
      (of == fused::gated || of == fused::gated_gradient ? "gated " : "biased ") +
      std::string(name(f));
  check_torch_rule(rule, what, out.format);
  if (f != function::silu && f != function::gelu && f != function::gelu_tanh) {
    throw unsupported("rule torch_2_11 has no " + what + " of " + std::string(name(out.format)) +
                      " numbers");
  }
  return {of, numerics::plan_of(function_rule::torch_2_11, f, out.format, 0, 0)};
}

/// The left or the right half of a matrix with an even number of columns.
template <class View>
View half_of(const View& v, int which) {
  View half = v;
  half.cols /= 2;
  if (which == 0 || v.data == nullptr) return half;
  const std::int64_t bytes = half.cols * v.col_stride * storage_bytes(v.format);
  using byte = std::conditional_t<std::is_same_v<View, matrix_view>, std::byte, const std::byte>;
  half.data = static_cast<byte*>(v.data) + bytes;
  return half;
}

void run_rotation(fused of, const const_matrix_view& in, const char* in_name,
                  const const_matrix_view& cos, const const_matrix_view& sin,
                  const matrix_view& out, const rotate_options& options, const executor& where) {
  check_torch_rule(options.rule, "rotary embedding", out.format);
  check_at_least("each", options.each, 1);
  check_view(out, "out");
  check_view(in, in_name);
  check_shape_of(in, in_name, out, "out");
  check_format_of(in, in_name, out, "out");
  check_distinct(out, "out");
  check_overlap(in, in_name, out);
  if (out.cols % 2 != 0) {
    throw invalid_argument("out: must have an even number of columns, got " +
                           std::to_string(out.cols));
  }
  checked_call call({of, {}}, {{half_of(out, 0), "out"}, {half_of(out, 1), "out"}});
  for (const int i : {0, 1}) call.add(half_of(in, i), in_name);
  call.add_rows({cos, options.each}, "cos");
  call.add_rows({sin, options.each}, "sin");
  call.run(where);
}

void check_indices(std::span<const std::int64_t> indices, const const_matrix_view& table) {
  if (table.space == memory_space::device) return;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < table.rows) continue;
    throw invalid_argument("indices: must be from 0 to " + std::to_string(table.rows - 1) +
                           ", got " + std::to_string(indices[i]) + " at position " +
                           std::to_string(i));
  }
}

/// in + added, with the checks of all three.
checked_call sum_call(const const_matrix_view& in, const char* in_name,
                      const const_matrix_view& added, const char* added_name,
                      const matrix_view& sum, const char* sum_name) {
  checked_call call({fused::scaled_sum, {}}, {{sum, sum_name}});
  call.add(in, in_name);
  call.add(added, added_name);
  return call;
}

/// Runs a norm of in + added. `call`: that of the norm of `sum`. Device backends have one kernel for
/// both.
void run_norm_of_sum(row_call call, const const_matrix_view& in, const const_matrix_view& added,
                     const matrix_view& sum, const executor& where) {
  const checked_call first = sum_call(in, "in", added, "added", sum, "sum");
  check_view(call.out, "out");
  check_shape_of(sum, "sum", call.out, "out");
  check_apart(sum, "sum", call.out, "out");
  call = checked_rows(call);
  for (const const_matrix_view& statistics : {call.mean, call.rstd}) {
    if (statistics.data == nullptr) continue;
    check_apart(in, "in", statistics, "mean or rstd");
    check_apart(added, "added", statistics, "mean or rstd");
  }
  check_overlap(in, "in", call.out);
  check_overlap(added, "added", call.out);
  if (sum.space == memory_space::device) {
    call.of = call.of == row_function::layer_norm ? row_function::sum_layer_norm
                                                  : row_function::sum_rms_norm;
    call.in = in;
    call.grad = added;
    call.sum = sum;
  } else {
    first.run(where);
  }
  run_checked_rows(call, where);
}

/// Runs the gradient of a norm of a sum, plus `of_sum`.
void run_gradient_of_sum(row_call call, const const_matrix_view& of_sum, const executor& where) {
  call = checked_rows(call);
  if (of_sum.data == nullptr) return run_checked_rows(call, where);
  const checked_call last = sum_call(call.out, "out", of_sum, "of_sum", call.out, "out");
  check_apart(of_sum, "of_sum", call.out, "out");
  if (call.out.space == memory_space::host) {
    run_checked_rows(call, where);
    return last.run(where);
  }
  call.of = call.of == row_function::layer_norm_gradient ? row_function::sum_layer_norm_gradient
                                                         : row_function::sum_rms_norm_gradient;
  call.bias = of_sum;
  run_checked_rows(call, where);
}

std::uint32_t binary32_of(double x) { return torch::narrow(std::bit_cast<std::uint64_t>(x)); }

}  // namespace
}  // namespace backends

using backends::checked_call;
using backends::fused;
using backends::row_call;
using backends::row_function;

void gated(function f, const const_matrix_view& gate, const const_matrix_view& up,
           const matrix_view& out, function_rule rule, const executor& where) {
  checked_call call(backends::plan_of(fused::gated, f, rule, out), {{out, "out"}});
  call.add(gate, "gate");
  call.add(up, "up");
  call.run(where);
}

void gated_gradient(function f, const const_matrix_view& grad, const const_matrix_view& gate,
                    const const_matrix_view& up, const matrix_view& of_gate,
                    const matrix_view& of_up, function_rule rule, const executor& where) {
  checked_call call(backends::plan_of(fused::gated_gradient, f, rule, of_gate),
                    {{of_gate, "of_gate"}, {of_up, "of_up"}});
  call.add(grad, "grad");
  call.add(gate, "gate");
  call.add(up, "up");
  call.run(where);
}

void biased(function f, const const_matrix_view& x, const const_matrix_view& bias,
            const matrix_view& out, function_rule rule, const executor& where) {
  checked_call call(backends::plan_of(fused::biased, f, rule, out), {{out, "out"}});
  call.add(x, "x");
  backends::check_shape(bias, "bias", 1, out.cols);
  call.add_rows({bias}, "bias");
  call.run(where);
}

void biased_gradient(function f, const const_matrix_view& grad, const const_matrix_view& x,
                     const const_matrix_view& bias, const matrix_view& out, function_rule rule,
                     const executor& where) {
  checked_call call(backends::plan_of(fused::biased_gradient, f, rule, out), {{out, "out"}});
  call.add(grad, "grad");
  call.add(x, "x");
  backends::check_shape(bias, "bias", 1, out.cols);
  call.add_rows({bias}, "bias");
  call.run(where);
}

void rotate(const const_matrix_view& in, const const_matrix_view& cos, const const_matrix_view& sin,
            const matrix_view& out, const rotate_options& options, const executor& where) {
  backends::run_rotation(fused::rotation, in, "in", cos, sin, out, options, where);
}

void rotate_gradient(const const_matrix_view& grad, const const_matrix_view& cos,
                     const const_matrix_view& sin, const matrix_view& out,
                     const rotate_options& options, const executor& where) {
  backends::run_rotation(fused::rotation_gradient, grad, "grad", cos, sin, out, options, where);
}

void embed(std::span<const std::int64_t> indices, const const_matrix_view& table,
           const const_matrix_view& positions, const matrix_view& out, const embed_options& options,
           const executor& where) {
  const bool sums = positions.data != nullptr;
  backends::check_torch_rule(options.rule, "embedding", out.format);
  checked_call call(
      {sums ? fused::scaled_sum : fused::scaled, {}, backends::binary32_of(options.scale)},
      {{out, "out"}});
  if (static_cast<std::int64_t>(indices.size()) != out.rows) {
    throw invalid_argument("indices: must be " + std::to_string(out.rows) +
                           ", one for each row, got " + std::to_string(indices.size()));
  }
  backends::check_indices(indices, table);
  call.add_rows({table, 1, indices.data()}, "table");
  if (sums) call.add_rows({positions}, "positions");
  call.run(where);
}

void dropout(const const_matrix_view& in, const matrix_view& out, const dropout_options& options,
             const executor& where) {
  if (!(options.probability >= 0 && options.probability <= 1)) {
    throw invalid_argument("probability: must be from 0 to 1");
  }
  checked_call call(
      numerics::torch_2_11::dropout_plan(out.format, backends::binary32_of(options.probability)),
      {{out, "out"}});
  call.set_random(options.random);
  call.add(in, "in");
  call.run(where);
}

void add_layer_norm(const const_matrix_view& in, const const_matrix_view& added,
                    const const_matrix_view& weight, const const_matrix_view& bias,
                    const matrix_view& sum, const matrix_view& out, const matrix_view& mean,
                    const matrix_view& rstd, const layer_norm_options& options,
                    const executor& where) {
  row_call call = backends::norm_call(row_function::layer_norm, sum, out, options);
  call.weight = weight;
  call.bias = bias;
  call.mean = mean;
  call.rstd = rstd;
  backends::run_norm_of_sum(call, in, added, sum, where);
}

void add_rms_norm(const const_matrix_view& in, const const_matrix_view& added,
                  const const_matrix_view& weight, const matrix_view& sum, const matrix_view& out,
                  const matrix_view& rstd, const layer_norm_options& options,
                  const executor& where) {
  row_call call = backends::norm_call(row_function::rms_norm, sum, out, options);
  call.weight = weight;
  call.rstd = rstd;
  backends::run_norm_of_sum(call, in, added, sum, where);
}

void add_layer_norm_gradient(const const_matrix_view& grad, const const_matrix_view& of_sum,
                             const const_matrix_view& sum, const const_matrix_view& mean,
                             const const_matrix_view& rstd, const const_matrix_view& weight,
                             const matrix_view& out, const layer_norm_options& options,
                             const executor& where) {
  row_call call = backends::norm_call(row_function::layer_norm_gradient, sum, out, options);
  call.grad = grad;
  call.weight = weight;
  call.mean = mean;
  call.rstd = rstd;
  backends::run_gradient_of_sum(call, of_sum, where);
}

void add_rms_norm_gradient(const const_matrix_view& grad, const const_matrix_view& of_sum,
                           const const_matrix_view& sum, const const_matrix_view& rstd,
                           const const_matrix_view& weight, const matrix_view& out,
                           const layer_norm_options& options, const executor& where) {
  row_call call = backends::norm_call(row_function::rms_norm_gradient, sum, out, options);
  call.grad = grad;
  call.weight = weight;
  call.rstd = rstd;
  backends::run_gradient_of_sum(call, of_sum, where);
}

}  // namespace samebits
