// compute() on arrays: checks arguments and chooses a backend.
#include "backends/dispatch/calls/array_arithmetic.hpp"

#include <cstdint>
#include <string>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/arithmetic.hpp"

namespace samebits {
namespace backends {
namespace {

constexpr const char* operand_names[max_operands] = {"in.a", "in.b", "in.c"};

/// The memory of the flags as a view of one-byte elements, for the checks of views.
matrix_view as_view(const flags_view& each, const matrix_view& out) {
  return {each.data,       format_id::e4m3, out.rows, out.cols,
          each.row_stride, each.col_stride, out.space};
}

void check_operand(const const_matrix_view& v, const char* which, const matrix_view& out) {
  check_view(v, which);
  check_format(v, which, arithmetic_formats);
  check_shape_of(v, which, out, "out");
  check_space_of(v, which, out, "out");
  check_overlap(v, which, out);
}

void check_flags(const compute_call& call, int operands) {
  if (call.each.data == nullptr) return;
  const matrix_view each = as_view(call.each, call.out);
  check_view(each, "each");
  check_distinct(each, "each");
  check_apart(each, "each", call.out, "out");
  for (int i = 0; i < operands; ++i) check_apart(each, "each", call.operands[i], operand_names[i]);
}

compute_call checked(operation op, const array_operands& in, const matrix_view& out,
                     const compute_options& options, flag_report report, const flags_view& each,
                     const executor& where) {
  check_value("op", op, "operation");
  check_view(out, "out");
  check_format(out, "out", arithmetic_formats);
  check_distinct(out, "out");
  compute_call call{op,
                    {in.a, in.b, in.c},
                    out,
                    {options.rounding, options.overflow, options.nan},
                    options.random,
                    options.random.pitch.value_or(static_cast<std::uint64_t>(out.cols)),
                    report,
                    each};
  const int operands = operand_count(op);
  for (int i = 0; i < operands; ++i) check_operand(call.operands[i], operand_names[i], out);
  for (int i = operands; i < max_operands; ++i) call.operands[i] = {};
  check_flags(call, operands);
  check_rule(call.rule, call.random);
  check_threads(where);
  return call;
}

/// A part of an error message: the operation, formats and rule that a backend does not support.
struct lacking {
  const compute_call& call;
};
void append_text(std::string& text, const lacking& what) {
  const compute_call& call = what.call;
  text += detail::cat("has no ", call.op);
  for (int i = 0; i < operand_count(call.op); ++i) {
    text += detail::cat(i == 0 ? " of " : ", ", call.operands[i].format);
  }
  text +=
      detail::cat(" into ", call.out.format, " with ", call.rule.rounding, ", ", call.rule.overflow,
                  ", ", call.rule.nan, call.report == flag_report::wanted ? ", flags" : "");
}

const backend& computing_backend(const compute_call& call, const executor& where) {
  return backend_for(&backend::compute, call, call.out.space, where, lacking{call});
}

/// Makes the call's device current until the end of the scope.
device_scope scope_of(const compute_call& call, const std::uint32_t* raised, const executor& where,
                      completion ends) {
  return device_scope(call.out.space,
                      {{call.out, "out"},
                       {call.operands[0], operand_names[0]},
                       {call.operands[1], operand_names[1]},
                       {call.operands[2], operand_names[2]},
                       {is_empty(call.out) ? nullptr : call.each.data, "each"},
                       {raised, "raised"}},
                      where.stream, ends);
}

flags run(compute_call call, const executor& where) {
  const bool reports = call.report == flag_report::wanted;
  const device_scope on =
      scope_of(call, nullptr, where, reports ? completion::awaited : completion::enqueued);
  const backend& chosen = computing_backend(call, where);
  if (is_empty(call.out)) return flags::none;
  flags all = flags::none;
  if (reports) call.all = &all;
  chosen.compute.run(call, where);
  return all;
}

}  // namespace
}  // namespace backends

void compute(operation op, const array_operands& in, const matrix_view& out,
             const compute_options& options, const executor& where) {
  using backends::flag_report;
  backends::run(backends::checked(op, in, out, options, flag_report::none, {}, where), where);
}

void enqueue_compute_with_flags(operation op, const array_operands& in, const matrix_view& out,
                                std::uint32_t* raised, const compute_options& options,
                                const flags_view& each, const executor& where) {
  namespace b = backends;
  b::compute_call call = b::checked(op, in, out, options, b::flag_report::wanted, each, where);
  refuse_if(out.space != memory_space::device,
            "out: must lie in device memory; of host memory compute_with_flags()");
  refuse_if(raised == nullptr || reinterpret_cast<std::uintptr_t>(raised) % 4 != 0,
            "raised: must be 4 bytes of device memory, aligned to 4");
  const b::device_scope on = b::scope_of(call, raised, where, b::completion::enqueued);
  call.all_on_device = raised;
  b::computing_backend(call, where).compute.run(call, where);
}

flags compute_with_flags(operation op, const array_operands& in, const matrix_view& out,
                         const compute_options& options, const flags_view& each,
                         const executor& where) {
  using backends::flag_report;
  return backends::run(backends::checked(op, in, out, options, flag_report::wanted, each, where),
                       where);
}

}  // namespace samebits
