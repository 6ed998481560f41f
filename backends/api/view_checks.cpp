// Checks shared by the public array functions.
#include "backends/api/view_checks.hpp"

#include <limits>

#include "backends/dispatch/overlap.hpp"
#include "samebits/error.hpp"

namespace samebits::backends {
namespace {

using wide = __int128;

/// Offset of the last element from `data`, in elements. Requires a view that is not empty.
wide last_element(const const_matrix_view& v) {
  return static_cast<wide>(v.rows - 1) * v.row_stride +
         static_cast<wide>(v.cols - 1) * v.col_stride;
}

/// Whether the byte ranges from first to last element of the two views are disjoint.
bool are_distant(const const_matrix_view& a, const const_matrix_view& b) {
  if (is_empty(a) || is_empty(b)) return true;
  const extent x = extent_of(a, 0, false);
  const extent y = extent_of(b, 0, false);
  return x.begin >= y.end || y.begin >= x.end;
}

/// Throws the error for two views that share memory, or may share memory, as `found` says.
[[noreturn]] void refuse_overlap(sharing found, const std::string& which, const std::string& other,
                                 const char* expected) {
  throw invalid_argument(
      which + ": " +
      (found == sharing::some ? "overlaps " + other + expected : undecided_overlap(other)));
}

}  // namespace

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

bool is_empty(const const_matrix_view& v) { return v.rows == 0 || v.cols == 0; }

void refuse_value(const char* which, int number, const char* type) {
  throw invalid_argument(std::string(which) + ": must be a value of samebits::" + type + ", got " +
                         std::to_string(number));
}

void check_view(const const_matrix_view& v, const char* which) {
  const auto refuse = [&](const std::string& what) {
    throw invalid_argument(std::string(which) + ": " + what);
  };
  if (static_cast<int>(v.format) >= format_count) {
    refuse("format must be a value of samebits::format_id, got " +
           std::to_string(static_cast<int>(v.format)));
  }
  if (v.rows < 0 || v.cols < 0) {
    refuse("sizes must be >= 0, got " + shape_text(v.rows, v.cols));
  }
  if (v.row_stride < 0 || v.col_stride < 0) {
    refuse("strides must be >= 0, got row_stride " + std::to_string(v.row_stride) +
           ", col_stride " + std::to_string(v.col_stride));
  }
  if (is_empty(v)) return;
  if (v.data == nullptr) refuse("data is null but the shape is " + shape_text(v.rows, v.cols));
  constexpr auto maximum = std::numeric_limits<std::int64_t>::max();
  if ((last_element(v) + 1) * storage_bytes(v.format) > maximum ||
      static_cast<wide>(v.rows) * v.cols > maximum) {
    refuse("the view spans more than 2^63 bytes");
  }
}

void check_distinct(const const_matrix_view& v, const char* which) {
  if (!repeats_elements(v)) return;
  throw invalid_argument(std::string(which) + ": elements share memory: of shape " +
                         shape_text(v.rows, v.cols) + " with row_stride " +
                         std::to_string(v.row_stride) + ", col_stride " +
                         std::to_string(v.col_stride) + " two or more lie at one address");
}

void check_apart(const const_matrix_view& v, const std::string& which,
                 const const_matrix_view& other, const std::string& other_name) {
  if (are_distant(v, other)) return;
  std::int64_t steps = steps_of_a_pair;
  const sharing found = sharing_of(v, other, steps);
  if (found != sharing::none) refuse_overlap(found, which, other_name, "");
}

bool are_same_elements(const const_matrix_view& a, const const_matrix_view& b) {
  return a.data == b.data && storage_bytes(a.format) == storage_bytes(b.format) &&
         (a.rows == 1 || a.row_stride == b.row_stride) &&
         (a.cols == 1 || a.col_stride == b.col_stride);
}

void check_overlap(const const_matrix_view& in, const char* which, const matrix_view& out) {
  if (are_distant(in, out) || are_same_elements(in, out)) return;
  std::int64_t steps = steps_of_a_pair;
  const sharing found = sharing_of(in, out, steps);
  if (found == sharing::none) return;
  refuse_overlap(found, "out", which,
                 "; they must be disjoint, or the same data with equal element sizes and strides");
}

std::string undecided_overlap(const std::string& other) {
  return "whether it overlaps " + other +
         " takes too long to decide, because their rows interleave; pass views whose rows do not, "
         "or a copy";
}

void check_rule(const cast_rule& rule, const random_stream& random) {
  check_value("options.rounding", rule.rounding, "rounding");
  check_value("options.overflow", rule.overflow, "overflow");
  check_value("options.nan", rule.nan, "nan_policy");
  check_random(rule.rounding, random);
}

void check_random(rounding round, const random_stream& random) {
  if (round == rounding::stochastic && (random.bits < 1 || random.bits > 32)) {
    throw invalid_argument("options.random.bits must be in 1..32, got " +
                           std::to_string(random.bits));
  }
}

void check_threads(const executor& where) {
  if (where.threads < 0) {
    throw invalid_argument("where.threads must be >= 0, got " + std::to_string(where.threads));
  }
}

void check_memory(const backend& b, memory_space space) {
  if (b.space == space) return;
  const bool host = b.space == memory_space::host;
  throw invalid_argument("backend '" + std::string(b.name) + "' works on " +
                         (host ? "host" : "device") + " memory; in and out lie in " +
                         (host ? "device" : "host") + " memory");
}

}  // namespace samebits::backends
