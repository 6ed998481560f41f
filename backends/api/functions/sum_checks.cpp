// What calls of sums in PyTorch's order check in common.
#include "backends/api/functions/sum_checks.hpp"

#include "samebits/error.hpp"

namespace samebits::backends {

void check_at_least(const char* which, std::int64_t number, std::int64_t least) {
  if (number >= least) return;
  throw invalid_argument(std::string(which) + ": must be at least " + std::to_string(least) +
                         ", got " + std::to_string(number));
}

void check_sum_rule(function_rule rule, const std::string& what, format_id format) {
  check_value("rule", rule, "function_rule");
  const bool has_format =
      format == format_id::fp32 || format == format_id::fp16 || format == format_id::bf16;
  if (has_format && rule == function_rule::torch_2_11) return;
  throw unsupported("rule " + std::string(name(rule)) + " has no " + what + " of " +
                    std::string(name(format)) + " numbers");
}

void check_read(const const_matrix_view& v, const char* which, std::int64_t rows, std::int64_t cols,
                format_id format, const matrix_view& out, const char* out_name) {
  check_view(v, which);
  if (v.rows != rows || v.cols != cols) {
    throw invalid_argument(std::string(which) + ": shape must be " + shape_text(rows, cols) +
                           ", got " + shape_text(v.rows, v.cols));
  }
  if (v.format != format) {
    throw invalid_argument(std::string(which) + ": format must be " + std::string(name(format)) +
                           ", got " + std::string(name(v.format)));
  }
  if (v.space != out.space) {
    throw invalid_argument(std::string(which) + ": must lie in the same memory as " + out_name +
                           ", host or device");
  }
  check_apart(v, which, out, out_name);
}

const sum_kernels& sums_of(const executor& where, memory_space space, const char* what) {
  check_threads(where);
  const backend& chosen = resolve(where, space, [](const backend& b) { return b.sums != nullptr; });
  check_memory(chosen, space);
  if (chosen.sums == nullptr) {
    throw unsupported("backend '" + std::string(chosen.name) + "' has no " + what);
  }
  return chosen.sums();
}

}  // namespace samebits::backends
