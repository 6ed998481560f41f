// Calls of fused operators: their checks, and the choice of a backend.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "backends/api/functions/sum_checks.hpp"
#include "backends/dispatch/calls/fused.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits::backends {

using torch::fused;

/// The plan of gated() or biased(), or of a gradient; checks the function and the rule.
torch::fused_plan gated_plan(fused of, function f, function_rule rule,
                             const const_matrix_view& out);

/// Adds the memory of a checked call.
void add_quantization(device_finder& memory, const quantize_call& call);

/// Requires that a view shares no memory with what a quantization writes.
void check_apart_from(const quantize_outputs& outputs, const const_matrix_view& v,
                      const char* which);

/// Runs a checked call in device memory. `memory` has the operands.
void run_on_device(const fused_quantize_call& call, device_finder memory, const executor& where);

/// Checks the views of a call in turn, then runs it. The first result has the shape, format and
/// memory of all others.
class checked_fused {
 public:
  /// A view and its name in messages.
  using result = std::pair<const matrix_view&, const char*>;
  using operand = std::pair<const const_matrix_view&, const char*>;

  checked_fused(const torch::fused_plan& plan, std::initializer_list<result> results,
                std::initializer_list<operand> operands = {})
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
    for (const auto& [view, name] : operands) add(view, name);
  }

  /// An operand in the shape of the results; may have the elements of one.
  void add(const const_matrix_view& view, const char* name) {
    check_like(view, name, call_.out[0], result_names_[0]);
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
    refuse_if(v.view.rows == 0 && !is_empty(out), name, ": must have rows");
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
    run_call(&backend::fused, call_, out, where, "has no fused operators");
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

}  // namespace samebits::backends
