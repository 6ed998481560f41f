// Checks shared by the public array functions.
#include "backends/api/view_checks.hpp"

#include <algorithm>
#include <limits>

#include "backends/dispatch/overlap.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/axis_reductions.hpp"

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
  refuse_if(found == sharing::some, which, ": overlaps ", other, expected);
  refuse(which, ": ", undecided_overlap(other));
}

}  // namespace

const_matrix_view memory_of(const const_tensor_view& t, const char* which) {
  const auto check = [&](bool ok, const char* expected) {
    require(ok, which, expected, ", got shape ", t.shape, " and strides ", t.strides);
  };
  check(t.strides.size() == t.shape.size(), ": one stride per axis is expected");
  constexpr wide most = wide{1} << 60;
  wide span = 1;
  for (std::size_t i = 0; i < t.shape.size(); ++i) {
    check(t.shape[i] >= 0 && t.strides[i] >= 0, ": sizes and strides must be at least 0");
    span = std::min(span + static_cast<wide>(t.shape[i] - 1) * t.strides[i], most);
  }
  const bool empty = std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end();
  const auto count = static_cast<std::int64_t>(empty ? 0 : span);
  return {t.data, t.format, 1, count, count, 1, t.space};
}

void refuse_value(const char* which, int number, const char* type) {
  refuse(which, ": must be a value of samebits::", type, ", got ", number);
}

void check_view(const const_matrix_view& v, const char* which) {
  const auto format = static_cast<int>(v.format);
  refuse_if(format >= format_count, which, ": format must be a value of samebits::format_id, got ",
            format);
  refuse_if(v.rows < 0 || v.cols < 0, which, ": sizes must be >= 0, got ", shape_of(v));
  refuse_if(v.row_stride < 0 || v.col_stride < 0, which, ": strides must be >= 0, got row_stride ",
            v.row_stride, ", col_stride ", v.col_stride);
  if (is_empty(v)) return;
  refuse_if(v.data == nullptr, which, ": data is null but the shape is ", shape_of(v));
  constexpr auto maximum = std::numeric_limits<std::int64_t>::max();
  refuse_if((last_element(v) + 1) * storage_bytes(v.format) > maximum ||
                static_cast<wide>(v.rows) * v.cols > maximum,
            which, ": the view spans more than 2^63 bytes");
}

void check_shape(const const_matrix_view& v, const char* which, std::int64_t rows,
                 std::int64_t cols) {
  require(v.rows == rows && v.cols == cols, which, ": shape must be ", matrix_shape{rows, cols},
          ", got ", shape_of(v));
}

void check_shape_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                    const char* other_name) {
  require(shape_of(v) == shape_of(other), which, ": shape must be that of ", other_name, ", ",
          shape_of(other), ", got ", shape_of(v));
}

void check_format_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                     const char* other_name) {
  require(v.format == other.format, which, ": format must be that of ", other_name, ", ",
          other.format, ", got ", v.format);
}

void check_space_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                    const char* other_name) {
  require(v.space == other.space, which, ": must lie in the same memory as ", other_name,
          ", host or device");
}

void check_like(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                const char* other_name) {
  check_view(v, which);
  check_shape_of(v, which, other, other_name);
  check_format_of(v, which, other, other_name);
  check_space_of(v, which, other, other_name);
}

void check_format(const const_matrix_view& v, const char* which, std::span<const format_id> among) {
  std::string names;
  for (const format_id f : among) {
    if (v.format == f) return;
    names += (names.empty() ? "" : ", ") + std::string(name(f));
  }
  refuse(which, ": format must be ", (among.size() == 1 ? "" : "one of "), names, ", got ",
         v.format);
}

void check_host(const const_matrix_view& v, const char* which) {
  require(v.space == memory_space::host, which, ": must lie in host memory");
}

void check_at_least(const char* which, std::int64_t number, std::int64_t least) {
  require(number >= least, which, ": must be at least ", least, ", got ", number);
}

void check_distinct(const const_matrix_view& v, const char* which) {
  refuse_if(repeats_elements(v), which, ": elements share memory: of shape ", shape_of(v),
            " with row_stride ", v.row_stride, ", col_stride ", v.col_stride,
            " two or more lie at one address");
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
  refuse_if(round == rounding::stochastic && (random.bits < 1 || random.bits > 32),
            "options.random.bits must be in 1..32, got ", random.bits);
}

void check_threads(const executor& where) {
  refuse_if(where.threads < 0, "where.threads must be >= 0, got ", where.threads);
}

void check_workspace(std::span<const std::byte> workspace, const char* which, std::size_t needed) {
  refuse_if(workspace.size() < needed, which, ": needs ", needed, " bytes, got ", workspace.size());
  refuse_if(reinterpret_cast<std::uintptr_t>(workspace.data()) % 16 != 0, which,
            ": must be aligned to 16 bytes");
}

void check_memory(const backend& b, memory_space space) {
  require(b.space == space, "backend '", b.name, "' works on ", b.space,
          " memory; in and out lie in ", space, " memory");
}

}  // namespace samebits::backends
