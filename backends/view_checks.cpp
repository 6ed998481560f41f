// Checks that the public array functions share.
#include "backends/view_checks.hpp"

#include <limits>

#include "samebits/error.hpp"

namespace samebits::backends {
namespace {

using wide = __int128;

/// Index of the last element, in elements from data; the view is not empty.
wide last_element(const const_matrix_view& v) {
  return static_cast<wide>(v.rows - 1) * v.row_stride +
         static_cast<wide>(v.cols - 1) * v.col_stride;
}

std::uintptr_t begin_of(const const_matrix_view& v) {
  return reinterpret_cast<std::uintptr_t>(v.data);
}
std::uintptr_t end_of(const const_matrix_view& v) {
  return begin_of(v) + static_cast<std::uintptr_t>((last_element(v) + 1) * storage_bytes(v.format));
}

}  // namespace

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

bool is_empty(const const_matrix_view& v) { return v.rows == 0 || v.cols == 0; }

void check_view(const const_matrix_view& v, const char* which) {
  const auto refuse = [&](const std::string& what) {
    throw invalid_argument(std::string(which) + ": " + what);
  };
  if (static_cast<int>(v.format) >= format_count) refuse("format is not one of format_id's");
  if (v.rows < 0 || v.cols < 0) {
    refuse("sizes must be >= 0, got " + shape_text(v.rows, v.cols));
  }
  if (v.row_stride < 0 || v.col_stride < 0) {
    refuse("strides must be >= 0, got row_stride " + std::to_string(v.row_stride) +
           ", col_stride " + std::to_string(v.col_stride));
  }
  if (is_empty(v)) return;
  if (v.data == nullptr) refuse("data is null but the shape is " + shape_text(v.rows, v.cols));
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  if ((last_element(v) + 1) * storage_bytes(v.format) > most ||
      static_cast<wide>(v.rows) * v.cols > most) {
    refuse("the view spans more than 2^63 bytes");
  }
}

void check_distinct(const matrix_view& v, const char* which) {
  if (is_empty(v)) return;
  const bool rows_ok =
      v.rows == 1 || v.row_stride >= static_cast<wide>(v.cols - 1) * v.col_stride + 1;
  const bool cols_ok =
      v.cols == 1 || v.col_stride >= static_cast<wide>(v.rows - 1) * v.row_stride + 1;
  const bool row_moves = v.rows == 1 || v.row_stride > 0;
  const bool col_moves = v.cols == 1 || v.col_stride > 0;
  if (row_moves && col_moves && (rows_ok || cols_ok)) return;
  throw invalid_argument(std::string(which) + ": elements share memory: shape " +
                         shape_text(v.rows, v.cols) + " needs larger strides than row_stride " +
                         std::to_string(v.row_stride) + ", col_stride " +
                         std::to_string(v.col_stride));
}

bool are_disjoint(const const_matrix_view& a, const const_matrix_view& b) {
  return is_empty(a) || is_empty(b) || begin_of(a) >= end_of(b) || begin_of(b) >= end_of(a);
}

void check_overlap(const const_matrix_view& in, const char* which, const matrix_view& out) {
  if (are_disjoint(in, out)) return;
  const bool same_elements = in.data == out.data &&
                             storage_bytes(in.format) == storage_bytes(out.format) &&
                             (in.rows == 1 || in.row_stride == out.row_stride) &&
                             (in.cols == 1 || in.col_stride == out.col_stride);
  if (same_elements) return;
  throw invalid_argument("out: overlaps " + std::string(which) +
                         "; they must be disjoint, or the same data with equal element sizes and "
                         "strides");
}

void check_rule(const cast_rule& rule, const random_stream& random) {
  if (static_cast<int>(rule.round) >= rounding_count) {
    throw invalid_argument("options.round is not one of rounding's");
  }
  if (static_cast<int>(rule.on_overflow) >= overflow_count) {
    throw invalid_argument("options.on_overflow is not one of overflow's");
  }
  if (static_cast<int>(rule.on_nan) >= nan_policy_count) {
    throw invalid_argument("options.on_nan is not one of nan_policy's");
  }
  check_random(rule.round, random);
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
