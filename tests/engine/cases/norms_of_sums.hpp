// Norms of sums as cases: LayerNorm and RMSNorm behind a residual connection, and their gradients.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "engine/core/problem.hpp"
#include "samebits/operators.hpp"

namespace samebits::support {

struct norm_of_sum_case {
  bool rms = false, gradient = false;
  format_id format = format_id::fp32;
  array_layout in = {}, added = {}, sum = {}, out = {};  ///< of gradients: grad, of_sum, sum, out
  bool weight = false, bias = false;
  bool has_added = true;  ///< whether a gradient of the sum is given
  bool in_place = false;  ///< sum in the memory of in, or out in that of grad
  std::int64_t offset = 0;
  int threads = 1;
  std::uint64_t content = 0;
};
std::ostream& operator<<(std::ostream& out, const norm_of_sum_case& c);

operation_of<norm_of_sum_case> norms_of_sums();

/// What PyTorch's operators leave one after another, each by the library's definition.
returned_values norms_of_sums_by_definition(const norm_of_sum_case& c, const call_site& site);

}  // namespace samebits::support
