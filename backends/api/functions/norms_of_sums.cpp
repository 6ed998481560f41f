// Norms of sums and their gradients, and norms that are quantized: on device memory one call, on host
// memory two or three.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backends/api/functions/fused_call.hpp"
#include "backends/api/functions/row_calls.hpp"
#include "samebits/operators.hpp"

namespace samebits {
namespace backends {
namespace {

/// in + added, with the checks of all three.
checked_fused sum_call(const const_matrix_view& in, const char* in_name,
                       const const_matrix_view& added, const char* added_name,
                       const matrix_view& sum, const char* sum_name) {
  return {{fused::scaled_sum, {}}, {{sum, sum_name}}, {{in, in_name}, {added, added_name}}};
}

/// A norm of rows, or of sums of rows, checked. Device backends have one kernel for both.
struct checked_norm {
  row_call call;
  std::optional<checked_fused> sum = {};  ///< in host memory

  void run(const executor& where) const {
    if (sum) sum->run(where);
    run_checked_rows(call, where);
  }
};

/// Checks a norm of in + added. `call`: that of the norm of `sum`.
checked_norm check_norm_of_sum(row_call call, const const_matrix_view& in,
                               const const_matrix_view& added, const matrix_view& sum) {
  const checked_fused first = sum_call(in, "in", added, "added", sum, "sum");
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
  if (sum.space == memory_space::host) return {call, first};
  call.of = call.of == row_function::layer_norm ? row_function::sum_layer_norm
                                                : row_function::sum_rms_norm;
  call.in = in;
  call.grad = added;
  call.sum = sum;
  return {call};
}

/// Quantizes a norm of `in`, or of sum = in + added if `added` has data.
void quantize_norm(row_call call, const const_matrix_view& in, const const_matrix_view& added,
                   const matrix_view& sum, const quantize_outputs& outputs,
                   const quantize_options& options, const executor& where) {
  check_view(in, "in");
  check_torch_rule(call.rule, "quantized norms", in.format);
  const bool on_host = in.space == memory_space::host;
  matrix_view out = {nullptr, in.format, in.rows, in.cols, in.cols, 1, in.space};
  std::vector<std::byte> memory(
      on_host ? static_cast<std::size_t>(in.rows * in.cols * storage_bytes(in.format)) : 0);
  // On a device the backend has the norm's memory. Checks see an address that no view has.
  out.data = on_host ? memory.data() : reinterpret_cast<void*>(std::uintptr_t{1} << 60);
  fused_quantize_call both;
  both.tiles = checked_call(out, outputs, options);
  check_threads(where);
  const bool adds = added.data != nullptr;
  call.in = adds ? const_matrix_view(sum) : in;
  call.out = out;
  const checked_norm norm =
      adds ? check_norm_of_sum(call, in, added, sum) : checked_norm{checked_rows(call)};
  const std::pair<const_matrix_view, const char*> views[] = {
      {in, "in"},          {added, "added"},    {call.weight, "weight"}, {call.bias, "bias"},
      {call.mean, "mean"}, {call.rstd, "rstd"}, {call.in, "sum"}};
  device_finder device(in.space);
  for (const auto& [view, name] : views) {  // with data: read or written beside the quantization
    if (view.data == nullptr) continue;
    device.add(address_of(view), name);
    check_apart_from(outputs, view, name);
  }
  both.tiles.workspace = nullptr;
  if (on_host) {
    norm.run(where);
    return backend_for(&backend::quantize, both.tiles, in.space, where, "has no quantization")
        .quantize.run(both.tiles, where);
  }
  both.of_norm = true;
  both.norm = norm.call;
  both.norm.out.data = nullptr;
  both.tiles.in = both.norm.out;
  run_on_device(both, device, where);
}

/// Runs the gradient of a norm of a sum, plus `of_sum`.
void run_gradient_of_sum(row_call call, const const_matrix_view& of_sum, const executor& where) {
  call = checked_rows(call);
  if (of_sum.data == nullptr) return run_checked_rows(call, where);
  const checked_fused last = sum_call(call.out, "out", of_sum, "of_sum", call.out, "out");
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

}  // namespace
}  // namespace backends

using backends::row_call;
using backends::row_function;

void add_layer_norm(const const_matrix_view& in, const const_matrix_view& added,
                    const const_matrix_view& weight, const const_matrix_view& bias,
                    const matrix_view& sum, const matrix_view& out, const matrix_view& mean,
                    const matrix_view& rstd, const layer_norm_options& options,
                    const executor& where) {
  const row_call call = norm_call(row_function::layer_norm, sum, out, options,
                                  {.weight = weight, .rstd = rstd, .bias = bias, .mean = mean});
  backends::check_norm_of_sum(call, in, added, sum).run(where);
}

void add_rms_norm(const const_matrix_view& in, const const_matrix_view& added,
                  const const_matrix_view& weight, const matrix_view& sum, const matrix_view& out,
                  const matrix_view& rstd, const layer_norm_options& options,
                  const executor& where) {
  const row_call call =
      norm_call(row_function::rms_norm, sum, out, options, {.weight = weight, .rstd = rstd});
  backends::check_norm_of_sum(call, in, added, sum).run(where);
}

void layer_norm_quantize(const const_matrix_view& in, const const_matrix_view& added,
                         const const_matrix_view& weight, const const_matrix_view& bias,
                         const matrix_view& sum, const matrix_view& mean, const matrix_view& rstd,
                         const quantize_outputs& outputs, const quantize_options& quantization,
                         const layer_norm_options& options, const executor& where) {
  const row_call call = norm_call(row_function::layer_norm, in, {}, options,
                                  {.weight = weight, .rstd = rstd, .bias = bias, .mean = mean});
  backends::quantize_norm(call, in, added, sum, outputs, quantization, where);
}

void rms_norm_quantize(const const_matrix_view& in, const const_matrix_view& added,
                       const const_matrix_view& weight, const matrix_view& sum,
                       const matrix_view& rstd, const quantize_outputs& outputs,
                       const quantize_options& quantization, const layer_norm_options& options,
                       const executor& where) {
  const row_call call =
      norm_call(row_function::rms_norm, in, {}, options, {.weight = weight, .rstd = rstd});
  backends::quantize_norm(call, in, added, sum, outputs, quantization, where);
}

void add_layer_norm_gradient(const const_matrix_view& grad, const const_matrix_view& of_sum,
                             const const_matrix_view& sum, const const_matrix_view& mean,
                             const const_matrix_view& rstd, const const_matrix_view& weight,
                             const matrix_view& out, const layer_norm_options& options,
                             const executor& where) {
  const row_call call = norm_call(row_function::layer_norm_gradient, sum, out, options,
                                  {.weight = weight, .rstd = rstd, .mean = mean, .grad = grad});
  backends::run_gradient_of_sum(call, of_sum, where);
}

void add_rms_norm_gradient(const const_matrix_view& grad, const const_matrix_view& of_sum,
                           const const_matrix_view& sum, const const_matrix_view& rstd,
                           const const_matrix_view& weight, const matrix_view& out,
                           const layer_norm_options& options, const executor& where) {
  const row_call call = norm_call(row_function::rms_norm_gradient, sum, out, options,
                                  {.weight = weight, .rstd = rstd, .grad = grad});
  backends::run_gradient_of_sum(call, of_sum, where);
}

}  // namespace samebits
