// What functions by PyTorch's rules check in common.
#include "backends/api/functions/sum_checks.hpp"

#include <algorithm>
#include <array>

#include "backends/dispatch/refuse.hpp"

namespace samebits::backends {

void check_torch_rule(function_rule rule, const std::string& what, format_id format,
                      function_rule other) {
  check_value("rule", rule, "function_rule");
  require<unsupported>(
      is_among(format, number_formats) && (rule == function_rule::torch_2_11 || rule == other),
      "rule ", rule, " has no ", what, " of ", format, " numbers");
}

void check_read(const const_matrix_view& v, const char* which, std::int64_t rows, std::int64_t cols,
                format_id format, const matrix_view& out, const char* out_name) {
  check_view(v, which);
  check_shape(v, which, rows, cols);
  check_format(v, which, std::array{format});
  check_space_of(v, which, out, out_name);
  check_apart(v, which, out, out_name);
}

void check_indices(std::span<const std::int64_t> indices, const char* which, std::int64_t count,
                   std::optional<std::int64_t> ignored) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    require((indices[i] >= 0 && indices[i] < count) || indices[i] == ignored, which,
            ": must be from 0 to ", count - 1, ignored ? " or ignore_index" : "", ", got ",
            indices[i], " at position ", i);
  }
}

const sum_kernels& sums_of(const executor& where, memory_space space, const char* what) {
  const auto has = [](const backend& b) { return b.sums != nullptr; };
  return backend_for(has, space, where, "has no ", what).sums();
}

}  // namespace samebits::backends
