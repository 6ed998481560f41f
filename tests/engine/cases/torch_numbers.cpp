// Random numbers and layouts of tensors.
#include "engine/cases/torch_numbers.hpp"

namespace samebits::support {

strided_buffer numbers(format_id format, const array_layout& layout, const word_source& next,
                       const number_kind& kind) {
  constexpr std::uint32_t special[] = {0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                       0x00000001, 0x7F7FFFFF, 0x7F000000, 0x477FE000, 0x33800000,
                                       0x3F800000, 0xC2B17218, 0x41A00000, 0xFFFFFFFF};
  strided_buffer m(format, layout);
  const auto binades = static_cast<std::uint64_t>(kind.high - kind.low);
  for (std::int64_t i = 0; i < layout.rows * layout.cols; ++i) {
    const std::uint64_t word = next();
    const int exponent = kind.low + static_cast<int>((word >> 40) % binades);
    std::uint32_t x = (static_cast<std::uint32_t>(word) & 0x807FFFFF) |
                      static_cast<std::uint32_t>(127 + exponent) << 23;
    if (kind.rarity != 0 && (word >> 44) % kind.rarity == 0) {
      x = below(2, next) == 0 ? static_cast<std::uint32_t>(next()) : one_of(special, next);
    }
    m.store(layout.at(i), numerics::torch_2_11::code_of(format, x));
  }
  return m;
}

strided_buffer rows_of(format_id format, const array_layout& layout, const word_source& next) {
  constexpr std::uint32_t inf = 0x7F800000, minus = 0x80000000, two = 0x40000000;
  strided_buffer m(format, layout);
  const auto put = [&](std::int64_t row, std::int64_t col, std::uint32_t value) {
    m.store(layout.at(row, col), numerics::torch_2_11::code_of(format, value));
  };
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    const std::int64_t kind = below(3, next) == 0 ? below(7, next) : 0;
    for (std::int64_t col = 0; col < layout.cols; ++col) {
      const std::uint64_t word = next();
      const auto exponent = static_cast<std::uint32_t>((kind == 1 ? 124 : 120) + (word >> 40) % 10);
      std::uint32_t x = (static_cast<std::uint32_t>(word) & 0x807FFFFF) | exponent << 23;
      if (kind == 2) x = two;
      if (kind == 3) x &= minus;
      if (kind == 6) x = minus | inf;
      put(row, col, x);
    }
    if (layout.cols == 0 || kind < 4) continue;
    const std::int64_t at = below(layout.cols, next);
    put(row, at, kind == 4 ? inf : kind == 5 ? 0x7FC00000 : two);
  }
  return m;
}

words row_of(const matrix_view& v, std::int64_t row) {
  words x;
  for (std::int64_t col = 0; col < v.cols; ++col) x.push_back(value_at(v, row, col));
  return x;
}

void put_row(const matrix_view& v, std::int64_t row, const words& x) {
  for (std::size_t col = 0; col < x.size(); ++col) {
    put_value(v, row, static_cast<std::int64_t>(col), x[col]);
  }
}

std::vector<std::int64_t> row_widths(format_id format) {
  std::vector<std::int64_t> all = {76,   77,   96,    100,   128,   250,   512,  1020,
                                   1024, 1025, 1031,  2048,  2050,  2051,  3000, 4096,
                                   9216, 9217, 10007, 12000, 12264, 12288, 16003};
  for (std::int64_t n = 1; n <= 40; ++n) all.push_back(n);
  if (format == format_id::bf16) all.insert(all.end(), {24504, 24536, 24552, 50304, 120'008});
  return all;
}

array_layout draw_written(std::int64_t rows, std::int64_t cols, const word_source& next) {
  return below(2, next) == 0 ? dense_layout(rows, cols)
                             : draw_layout(rows, cols, array_side::written, next);
}

case_buffer result_buffer(const char* name, format_id format, const array_layout& layout,
                          bool has_it) {
  return {name, buffer_use::result, strided_buffer(format, has_it ? layout : array_layout{}),
          !has_it};
}

}  // namespace samebits::support
