// Calls of operations over tensor lists as cases.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/cases/operations.hpp"
#include "engine/core/layout.hpp"
#include "engine/inputs/list_codes.hpp"
#include "samebits/convert.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::support {

inline constexpr std::size_t max_lists = 3;

/// How many lists a call takes.
inline std::size_t lists_of(list_call which) {
  if (which == list_call::axpby) return 3;
  return which == list_call::accumulate || which == list_call::cast ? 2 : 1;
}

/// A tensor in each of the lists.
struct listed_tensor {
  std::int64_t rows = 0, cols = 0;
  std::array<format_id, max_lists> formats = {};
  std::array<array_layout, max_lists> layouts = {};
};

struct list_case {
  list_call which = list_call::scale;
  std::vector<listed_tensor> tensors = {};
  float a = 1, b = 1;
  double max_norm = 1;
  bool has_scales = false;
  inspect_counts counts = inspect_counts::nonfinite;
  convert_options cast = {};
  std::size_t out = 2;  ///< the list that axpby writes; 0: cast() writes over its operands
  list_content kind = list_content::ordinary;
  int threads = 1;
  std::uint64_t content = 0;
};

void describe(list_case& c, case_fields& fields);

}  // namespace samebits::support
