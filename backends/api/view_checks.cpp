// Checks shared by the public array functions.
#include "backends/api/view_checks.hpp"

#include <algorithm>
#include <limits>

#include "backends/dispatch/overlap.hpp"
#include "samebits/axis_reductions.hpp"
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

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

const_matrix_view memory_of(const const_tensor_view& t, const char* which) {
  const auto refuse = [&](const std::string& what) {
    throw invalid_argument(std::string(which) + ": " + what + ", got shape " + shape_text(t.shape) +
                           " and strides " + shape_text(t.strides));
  };
  if (t.strides.size() != t.shape.size()) refuse("one stride per axis is expected");
  constexpr wide most = wide{1} << 60;
  wide span = 1;
  for (std::size_t i = 0; i < t.shape.size(); ++i) {
    if (t.shape[i] < 0 || t.strides[i] < 0) refuse("sizes and strides must be at least 0");
    span = std::min(span + static_cast<wide>(t.shape[i] - 1) * t.strides[i], most);
  }
  const bool empty = std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end();
  const auto count = static_cast<std::int64_t>(empty ? 0 : span);
  return {t.data, t.format, 1, count, count, 1, t.space};
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

void check_shape(const const_matrix_view& v, const char* which, std::int64_t rows,
                 std::int64_t cols) {
  if (v.rows == rows && v.cols == cols) return;
  throw invalid_argument(std::string(which) + ": shape must be " + shape_text(rows, cols) +
                         ", got " + shape_text(v.rows, v.cols));
}

void check_shape_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                    const char* other_name) {
  if (v.rows == other.rows && v.cols == other.cols) return;
  throw invalid_argument(std::string(which) + ": shape must be that of " + other_name + ", " +
                         shape_text(other.rows, other.cols) + ", got " +
                         shape_text(v.rows, v.cols));
}

void check_format_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                     const char* other_name) {
  if (v.format == other.format) return;
  throw invalid_argument(std::string(which) + ": format must be that of " + other_name + ", " +
                         std::string(name(other.format)) + ", got " + std::string(name(v.format)));
}

void check_space_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                    const char* other_name) {
  if (v.space == other.space) return;
  throw invalid_argument(std::string(which) + ": must lie in the same memory as " + other_name +
                         ", host or device");
}

void check_format(const const_matrix_view& v, const char* which, std::span<const format_id> among) {
  std::string names;
  for (const format_id f : among) {
    if (v.format == f) return;
    names += (names.empty() ? "" : ", ") + std::string(name(f));
  }
  throw invalid_argument(std::string(which) + ": format must be " +
                         (among.size() == 1 ? "" : "one of ") + names + ", got " +
                         std::string(name(v.format)));
}

void check_host(const const_matrix_view& v, const char* which) {
  if (v.space == memory_space::host) return;
  throw invalid_argument(std::string(which) + ": must lie in host memory");
}

void check_at_least(const char* which, std::int64_t number, std::int64_t least) {
  if (number >= least) return;
  throw invalid_argument(std::string(which) + ": must be at least " + std::to_string(least) +
                         ", got " + std::to_string(number));
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

void check_workspace(std::span<const std::byte> workspace, const char* which, std::size_t needed) {
  if (workspace.size() < needed) {
    throw invalid_argument(std::string(which) + ": needs " + std::to_string(needed) +
                           " bytes, got " + std::to_string(workspace.size()));
  }
  if (reinterpret_cast<std::uintptr_t>(workspace.data()) % 16 != 0) {
    throw invalid_argument(std::string(which) + ": must be aligned to 16 bytes");
  }
}

void check_memory(const backend& b, memory_space space) {
  if (b.space == space) return;
  const bool host = b.space == memory_space::host;
  throw invalid_argument("backend '" + std::string(b.name) + "' works on " +
                         (host ? "host" : "device") + " memory; in and out lie in " +
                         (host ? "device" : "host") + " memory");
}

const backend& backend_for(const executor& where, memory_space space,
                           const std::function<bool(const backend&)>& has,
                           const std::string& lacks) {
  check_threads(where);
  const backend& chosen = resolve(where, space, has);
  check_memory(chosen, space);
  if (has(chosen)) return chosen;
  throw unsupported("backend '" + std::string(chosen.name) + "' " + lacks);
}

}  // namespace samebits::backends
