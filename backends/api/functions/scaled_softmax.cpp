// scaled_softmax() and its gradient: check the mask, then as softmax().
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "backends/api/functions/row_calls.hpp"
#include "backends/api/functions/sum_checks.hpp"
#include "backends/dispatch/refuse.hpp"
#include "numerics/hardware/torch_operators/power.hpp"
#include "samebits/operators.hpp"

namespace samebits {
namespace backends {
namespace {

/// Requires that the mask has the row of the last batch, head and query.
void check_mask_rows(const scaled_softmax_options& options, std::int64_t rows) {
  const std::int64_t batches = rows / options.heads / options.queries;
  const std::int64_t sizes[] = {batches, options.heads, options.queries};
  std::int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t step = options.mask_steps[i];
    check_at_least("mask_steps", step, 0);
    if (rows == 0) continue;
    const std::int64_t most = options.mask.rows - 1 - last;  // below 0: the mask has no rows
    refuse_if(most < 0 || (step > 0 && sizes[i] - 1 > most / step), "mask: has too few rows, ",
              options.mask.rows);
    last += step * (sizes[i] - 1);
  }
}

torch::mask_use check_mask(const scaled_softmax_options& options, const matrix_view& out) {
  const const_matrix_view& mask = options.mask;
  if (mask.data == nullptr) return torch::mask_use::none;
  check_view(mask, "mask");
  check_shape(mask, "mask", mask.rows, out.cols);
  check_space_of(mask, "mask", out, "out");
  check_apart(mask, "mask", out, "out");
  check_mask_rows(options, out.rows);
  if (mask.format == format_id::e8m0) return torch::mask_use::fills;
  check_format_of(mask, "mask", out, "out");
  return torch::mask_use::added;
}

void run_scores(row_call call, const scaled_softmax_options& options, const executor& where) {
  const matrix_view& out = call.out;
  call.rule = options.rule;
  check_view(out, "out");
  check_torch_rule(options.rule, "scaled softmax", out.format);
  call = checked_rows(call);
  check_at_least("heads", options.heads, 1);
  check_at_least("queries", options.queries, 1);
  refuse_if(out.rows % options.queries != 0 || out.rows / options.queries % options.heads != 0,
            "out: rows must be a multiple of heads * queries, got ", out.rows);
  call.has_scores = true;
  call.scores = {.scale = torch::narrow(std::bit_cast<std::uint64_t>(options.scale)),
                 .mask = check_mask(options, out),
                 .causal = options.causal,
                 .heads = options.heads,
                 .queries = options.queries};
  std::copy_n(options.mask_steps, 3, call.scores.steps);
  call.mask = options.mask;
  run_checked_rows(call, where);
}

}  // namespace
}  // namespace backends

using backends::row_function;

void scaled_softmax(const const_matrix_view& in, const matrix_view& out,
                    const scaled_softmax_options& options, const executor& where) {
  backends::run_scores({.of = row_function::softmax, .in = in, .out = out}, options, where);
}

void scaled_softmax_gradient(const const_matrix_view& grad, const const_matrix_view& result,
                             const matrix_view& out, const scaled_softmax_options& options,
                             const executor& where) {
  backends::run_scores(
      {.of = row_function::softmax_gradient, .grad = grad, .in = result, .out = out}, options,
      where);
}

}  // namespace samebits
