// Sums, means and norms over axes as cases.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "engine/core/problem.hpp"
#include "samebits/axis_reductions.hpp"

namespace samebits::support {

struct axis_case {
  axis_reduction_options options = {.rule = function_rule::torch_2_11};
  format_id format = format_id::fp32;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};
  std::vector<int> axes = {};
  array_layout out = {};
  int threads = 1;
  std::uint64_t content = 0;
};
std::ostream& operator<<(std::ostream& out, const axis_case& c);

operation_of<axis_case> axis_reductions();

/// What the definition in numerics/ leaves, one result after another.
returned_values axes_by_definition(const axis_case& c, const call_site& site);

}  // namespace samebits::support
