// Rotary tables.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/cases/operations.hpp"
#include "samebits/rotary.hpp"
#include "samebits/types.hpp"

namespace samebits::support {
namespace {

struct rotary_case {
  std::vector<std::int64_t> positions = {};
  std::vector<double> frequencies = {};  ///< empty: by the base
  rotary_options options = {};
  format_id format = format_id::fp32;
  array_layout cos = {}, sin = {};
  int threads = 1;
};
void describe(rotary_case& c, case_fields& fields) {
  fields.show("positions", c.positions, "frequencies", c.frequencies, "base", c.options.base,
              "angle", c.options.angle, "format", c.format);
  const std::size_t positions = c.positions.size();
  fields.fewer(c.positions);
  if (c.positions.size() != positions) {
    for (array_layout* l : {&c.cos, &c.sin}) l->resize(l->rows - 1, l->cols);
  }
  fields.reset("cos", c.cos, dense_layout(c.cos.rows, c.cos.cols), "sin", c.sin,
               dense_layout(c.cos.rows, c.cos.cols));
}

/// The call with other positions into other views.
void fill_table(const rotary_case& c, std::span<const std::int64_t> positions,
                const matrix_view& cos, const matrix_view& sin, const executor& where) {
  rotary_options options = c.options;
  options.frequencies = c.frequencies;
  rotary_table(positions, cos, sin, options, where);
}

double any_number(const word_source& next) {
  const auto x = std::bit_cast<double>(next());
  return std::isfinite(x) ? x : 1.0;
}

rotary_case draw_table(const word_source& next) {
  rotary_case c;
  for (std::int64_t i = below(30, next); i > 0; --i) {
    const auto wide = static_cast<std::int64_t>(next());
    c.positions.push_back(below(2, next) == 0 ? wide : wide % 100'000);
  }
  // Some tables have so many entries that several threads compute them.
  const std::int64_t columns = below(8, next) == 0 ? 16 + below(30, next) : below(9, next);
  c.options.angle = below(2, next) == 0 ? rotary_angle::exact : rotary_angle::binary32;
  for (std::int64_t i = below(2, next) * columns; i > 0; --i) {
    const double f = any_number(next);
    // Those beyond fp32 are refused for angles in binary32.
    const bool allowed = c.options.angle == rotary_angle::exact || std::abs(f) < 1e38;
    c.frequencies.push_back(allowed ? f : 0.5);
  }
  constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};
  c.format = one_of(formats, next);
  c.options.base = std::max(1.0, std::abs(any_number(next)));
  const auto rows = static_cast<std::int64_t>(c.positions.size());
  c.cos = draw_layout(rows, columns, array_side::written, next);
  c.sin = draw_layout(rows, columns, array_side::written, next);
  return c;
}

buffers memory_of_table(const rotary_case& c) {
  return {{"cos", buffer_use::result, strided_buffer(c.format, c.cos)},
          {"sin", buffer_use::result, strided_buffer(c.format, c.sin)}};
}

returned_values table_on(const rotary_case& c, const call_site& site) {
  fill_table(c, c.positions, site.views[0], site.views[1], site.target.where(c.threads));
  return {};
}

/// Each row by itself, at the opposite position: cos is even and sin is odd.
returned_values row_by_row_backward(const rotary_case& c, const call_site& site) {
  const executor where{"reference", 1};
  const std::uint64_t sign = std::uint64_t{1} << (spec_of(c.format).storage_bits - 1);
  for (std::int64_t row = 0; row < site.views[0].rows; ++row) {
    const std::int64_t p = c.positions[static_cast<std::size_t>(row)];
    const matrix_view cos = block_of(site.views[0], row, 1, 0, site.views[0].cols);
    const matrix_view sin = block_of(site.views[1], row, 1, 0, site.views[1].cols);
    fill_table(c, {&p, 1}, cos, sin, where);
    if (p == 0 || p == INT64_MIN) continue;
    std::vector<std::uint64_t> forward;
    for (std::int64_t col = 0; col < sin.cols; ++col) forward.push_back(code_at(sin, 0, col));
    const std::int64_t opposite = -p;
    fill_table(c, {&opposite, 1}, cos, sin, where);
    for (std::int64_t col = 0; col < sin.cols; ++col) {
      const std::uint64_t value = code_at(sin, 0, col);
      // The angle 0 has sin +0 at either sign, unless it is a binary32 number.
      const bool zero = (value & ~sign) == 0 && c.options.angle == rotary_angle::exact;
      const bool odd = value != canonical_nan(c.format) && !zero;
      put_code(sin, 0, col, odd ? value ^ sign : forward[static_cast<std::size_t>(col)]);
    }
  }
  return {};
}

const operation_of<rotary_case> tables = {draw_table, memory_of_table, table_on};

}  // namespace

array_operation rotary_operation() { return make_operation("rotary_table", tables); }

std::unique_ptr<array_target> opposite_rows() {
  return std::make_unique<function_target<rotary_case>>("opposite rows", row_by_row_backward);
}

}  // namespace samebits::support
