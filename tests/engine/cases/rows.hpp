// Functions of rows as cases: softmax, also of scores, log_softmax, LayerNorm and RMSNorm, and their
// gradients.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "engine/core/problem.hpp"
#include "samebits/operators.hpp"
#include "samebits/row_functions.hpp"

namespace samebits::support {

enum class row_function : std::uint8_t {
  softmax,
  log_softmax,
  softmax_gradient,
  log_softmax_gradient,
  layer_norm,
  layer_norm_gradient,
  rms_norm,
  rms_norm_gradient,
  scaled_softmax,
  scaled_softmax_gradient,
};
inline constexpr int row_function_count = 10;

/// How rows are scores.
struct score_case {
  double scale = 1;
  bool causal = false;
  std::int64_t heads = 1, queries = 1;
  bool has_mask = false, adds = false;
  bool own[3] = {};  ///< whether each batch, head, query has rows of the mask of its own
  friend bool operator==(const score_case&, const score_case&) = default;
};

struct row_case {
  row_function of = row_function::softmax;
  softmax_options options = {.rule = function_rule::torch_2_11};  ///< rule and offset of all
  double epsilon = 0.5;
  format_id format = format_id::fp32;
  array_layout in = {}, second = {}, out = {};  ///< gradients read two matrices
  bool weight = false, bias = false;
  bool in_place = false;
  score_case scores = {};
  int threads = 1;
  std::uint64_t content = 0;
};
std::ostream& operator<<(std::ostream& out, const row_case& c);

operation_of<row_case> row_functions();
/// Every width to 40, and widths at which the order of the sums changes; offsets and what is
/// beside.
std::vector<row_case> every_width();

/// What the definition in numerics/ leaves, one row after another.
returned_values rows_by_definition(const row_case& c, const call_site& site);

}  // namespace samebits::support
