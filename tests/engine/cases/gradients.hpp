// Gradient reductions as cases: lists of tensors with codes of every rank's own.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/problem.hpp"
#include "samebits/distributed.hpp"

namespace samebits::support {

/// A tensor of which every rank has a copy with codes of its own.
struct reduction_tensor {
  format_id format = format_id::fp32;
  array_layout layout = {};
  int binade = 0;  ///< of most numbers; -1000: codes of all families
};

struct reduction_case {
  int ranks = 1;
  std::vector<reduction_tensor> tensors = {};
  gradient_reduction how = {};
  std::uint64_t content = 0;
};

void describe(reduction_case& c, case_fields& fields);

}  // namespace samebits::support
