// The public array functions: check arguments, choose a backend, share the work among threads.
#include <cstdint>
#include <limits>
#include <string>

#include "backends/backend.hpp"
#include "backends/pieces.hpp"
#include "samebits/convert.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace {

using wide = __int128;

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

bool is_empty(const const_matrix_view& v) { return v.rows == 0 || v.cols == 0; }

/// Index of the last element, in elements from data; the view is not empty.
wide last_element(const const_matrix_view& v) {
  return static_cast<wide>(v.rows - 1) * v.row_stride +
         static_cast<wide>(v.cols - 1) * v.col_stride;
}

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

/// No two elements share memory: one axis is dense enough to fit between steps of the other.
void check_distinct(const matrix_view& v) {
  if (is_empty(v)) return;
  const bool rows_ok =
      v.rows == 1 || v.row_stride >= static_cast<wide>(v.cols - 1) * v.col_stride + 1;
  const bool cols_ok =
      v.cols == 1 || v.col_stride >= static_cast<wide>(v.rows - 1) * v.row_stride + 1;
  const bool row_moves = v.rows == 1 || v.row_stride > 0;
  const bool col_moves = v.cols == 1 || v.col_stride > 0;
  if (row_moves && col_moves && (rows_ok || cols_ok)) return;
  throw invalid_argument("out: elements share memory: shape " + shape_text(v.rows, v.cols) +
                         " needs larger strides than row_stride " + std::to_string(v.row_stride) +
                         ", col_stride " + std::to_string(v.col_stride));
}

void check_overlap(const const_matrix_view& in, const matrix_view& out) {
  if (is_empty(in)) return;
  const auto begin = [](const const_matrix_view& v) {
    return reinterpret_cast<std::uintptr_t>(v.data);
  };
  const auto end = [&](const const_matrix_view& v) {
    return begin(v) + static_cast<std::uintptr_t>((last_element(v) + 1) * storage_bytes(v.format));
  };
  if (begin(in) >= end(out) || begin(out) >= end(in)) return;
  const bool same_elements = in.data == out.data &&
                             storage_bytes(in.format) == storage_bytes(out.format) &&
                             (in.rows == 1 || in.row_stride == out.row_stride) &&
                             (in.cols == 1 || in.col_stride == out.col_stride);
  if (same_elements) return;
  throw invalid_argument(
      "out: overlaps in; they must be disjoint, or the same data with equal element sizes and "
      "strides");
}

void check_rule(const convert_options& o) {
  if (static_cast<int>(o.round) >= rounding_count) {
    throw invalid_argument("options.round is not one of rounding's");
  }
  if (static_cast<int>(o.on_overflow) >= overflow_count) {
    throw invalid_argument("options.on_overflow is not one of overflow's");
  }
  if (static_cast<int>(o.on_nan) >= nan_policy_count) {
    throw invalid_argument("options.on_nan is not one of nan_policy's");
  }
  if (o.round == rounding::stochastic && (o.random.bits < 1 || o.random.bits > 32)) {
    throw invalid_argument("options.random.bits must be in 1..32, got " +
                           std::to_string(o.random.bits));
  }
}

}  // namespace

void convert(const const_matrix_view& in, const matrix_view& out, const convert_options& options,
             const executor& where) {
  check_view(in, "in");
  check_view(out, "out");
  if (in.rows != out.rows || in.cols != out.cols) {
    throw invalid_argument("out: shape must be that of in, " + shape_text(in.rows, in.cols) +
                           ", got " + shape_text(out.rows, out.cols));
  }
  check_distinct(out);
  check_overlap(in, out);
  check_rule(options);
  if (where.threads < 0) {
    throw invalid_argument("where.threads must be >= 0, got " + std::to_string(where.threads));
  }
  if (in.space != out.space) {
    throw invalid_argument("out: must lie in the same memory as in, host or device");
  }

  const backends::convert_call call{
      in, out, cast_rule{options.round, options.on_overflow, options.on_nan}, options.random,
      options.random.pitch.value_or(static_cast<std::uint64_t>(in.cols))};
  const backends::backend& chosen = backends::resolve(where, call);
  if (chosen.space != in.space) {
    const bool host = chosen.space == memory_space::host;
    throw invalid_argument("backend '" + std::string(chosen.name) + "' works on " +
                           (host ? "host" : "device") + " memory; in and out lie in " +
                           (host ? "device" : "host") + " memory");
  }
  if (!chosen.has(call)) {
    throw unsupported(
        "backend '" + std::string(chosen.name) + "' has no " + std::string(name(in.format)) +
        " to " + std::string(name(out.format)) + " with " + std::string(name(options.round)) +
        ", " + std::string(name(options.on_overflow)) + ", " + std::string(name(options.on_nan)));
  }
  if (is_empty(in)) return;
  if (chosen.space == memory_space::device) return chosen.launch(call, where.stream);
  backends::for_each_piece(in.rows * in.cols, where.threads,
                           [&](backends::element_range range) { chosen.convert(call, range); });
}

}  // namespace samebits
