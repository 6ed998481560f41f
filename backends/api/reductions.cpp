// Reductions: check arguments and choose a backend.
#include "backends/dispatch/calls/reductions.hpp"

#include <cstdint>
#include <string>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/arithmetic.hpp"

namespace samebits {
namespace backends {
namespace {

void check_input(const const_matrix_view& v, const char* which) {
  check_view(v, which);
  check_format(v, which, arithmetic_formats);
}

const backend& reducing_backend(const reduction_call& call, const executor& where) {
  return backend_for(&backend::reduce, call, call.x.space, where, "has no reductions");
}

reduction_call checked(reduction what, const const_matrix_view& in) {
  check_input(in, "in");
  return {what, in, {}, {}};
}

reduction_call checked_dot(const const_matrix_view& x, const const_matrix_view& y,
                           const dot_options& options) {
  check_input(x, "x");
  check_input(y, "y");
  check_shape_of(y, "y", x, "x");
  check_space_of(y, "y", x, "x");
  check_value("options.precision", options.precision, "accumulation");
  check_value("options.order", options.order, "sum_order");
  return {reduction::dot, x, y, options};
}

device_scope scope_of(const reduction_call& call, const void* result, const std::byte* workspace,
                      const executor& where, completion ends) {
  return device_scope(call.x.space,
                      {{call.x, call.what == reduction::dot ? "x" : "in"},
                       {call.y, "y"},
                       {result, "result"},
                       {workspace, "workspace"}},
                      where.stream, ends);
}

reduction_result reduced(reduction_call call, const executor& where) {
  const device_scope on = scope_of(call, nullptr, nullptr, where, completion::awaited);
  const backend& b = reducing_backend(call, where);
  reduction_result result{};
  call.result = &result;
  b.reduce.run(call, where);
  return result;
}

void check_device(const reduction_call& call) {
  if (call.x.space == memory_space::device) return;
  refuse(call.what == reduction::dot ? "x" : "in", ": must lie in device memory");
}

std::size_t workspace_of(const reduction_call& call, const executor& where) {
  check_device(call);
  const device_scope on = scope_of(call, nullptr, nullptr, where, completion::enqueued);
  return reducing_backend(call, where).reduce.workspace_of(call);
}

void enqueue(reduction_call call, void* result, std::size_t alignment,
             std::span<std::byte> workspace, const executor& where) {
  check_device(call);
  refuse_if(result == nullptr || reinterpret_cast<std::uintptr_t>(result) % alignment != 0,
            "result: must be device memory aligned to ", alignment, " bytes");
  const device_scope on = scope_of(call, result, workspace.data(), where, completion::enqueued);
  const backend& b = reducing_backend(call, where);
  if (!workspace.empty()) check_workspace(workspace, "workspace", b.reduce.workspace_of(call));
  call.result_on_device = result;
  call.workspace = workspace.data();
  b.reduce.run(call, where);
}

}  // namespace
}  // namespace backends

using backends::reduction;

float amax(const const_matrix_view& in, const executor& where) {
  return backends::reduced(backends::checked(reduction::amax, in), where).amax;
}

element_counts counts(const const_matrix_view& in, const executor& where) {
  return backends::reduced(backends::checked(reduction::counts, in), where).counts;
}

double sum(const const_matrix_view& in, const executor& where) {
  return backends::reduced(backends::checked(reduction::sum, in), where).sum;
}

double sum_of_squares(const const_matrix_view& in, const executor& where) {
  return backends::reduced(backends::checked(reduction::sum_of_squares, in), where).sum;
}

double dot(const const_matrix_view& x, const const_matrix_view& y, const dot_options& options,
           const executor& where) {
  return backends::reduced(backends::checked_dot(x, y, options), where).sum;
}

std::size_t reduction_workspace(const const_matrix_view& in, const executor& where) {
  return backends::workspace_of(backends::checked(reduction::sum, in), where);
}

void enqueue_amax(const const_matrix_view& in, float* result, const executor& where) {
  backends::enqueue(backends::checked(reduction::amax, in), result, alignof(float), {}, where);
}

void enqueue_counts(const const_matrix_view& in, element_counts* result, const executor& where) {
  backends::enqueue(backends::checked(reduction::counts, in), result, alignof(element_counts), {},
                    where);
}

void enqueue_sum(const const_matrix_view& in, double* result, std::span<std::byte> workspace,
                 const executor& where) {
  backends::enqueue(backends::checked(reduction::sum, in), result, alignof(double), workspace,
                    where);
}

void enqueue_sum_of_squares(const const_matrix_view& in, double* result,
                            std::span<std::byte> workspace, const executor& where) {
  backends::enqueue(backends::checked(reduction::sum_of_squares, in), result, alignof(double),
                    workspace, where);
}

void enqueue_dot(const const_matrix_view& x, const const_matrix_view& y, double* result,
                 const dot_options& options, std::span<std::byte> workspace,
                 const executor& where) {
  backends::enqueue(backends::checked_dot(x, y, options), result, alignof(double), workspace,
                    where);
}

}  // namespace samebits
