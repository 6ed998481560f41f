// Values of options that sweeps combine: layouts, sizes, random streams, and their even choice.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/core/even_draw.hpp"
#include "engine/core/layout.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/quantize.hpp"

namespace samebits::support {

/// An element of a list, chosen evenly as an option.
template <class Values>
auto even_one_of(even_draw& draws, const char* option, const Values& values) {
  return std::data(values)[draws.draw(option, std::size(values))];
}
template <class Enum>
Enum even_enumerator(even_draw& draws, const char* option) {
  return draws.draw_as<Enum>(option, enum_count<Enum>);
}

/// A layout of a shape: dense, padded, with gaps, transposed; read ones repeat rows or columns.
inline array_layout even_layout(even_draw& draws, const char* option, std::int64_t rows,
                                std::int64_t cols, array_side side) {
  const array_layout all[] = {
      {rows, cols, cols, 1, 0},     {rows, cols, cols + 5, 1, 1}, {rows, cols, cols + 64, 1, 7},
      {rows, cols, 3 * cols, 3, 0}, {rows, cols, 1, rows, 0},     {rows, cols, 2, 2 * rows + 1, 3},
      {rows, cols, 0, 1, 0},        {rows, cols, 1, 0, 0},        {rows, cols, 0, 0, 0}};
  return all[draws.draw(option, side == array_side::read ? 9 : 6)];
}

/// Shapes around the lengths of vectors and pages, as rows and as columns; empty ones.
inline std::vector<matrix_shape> sizes_around_borders() {
  std::vector<matrix_shape> all = {{0, 0}, {0, 7}, {7, 0}, {13, 37}, {5, 33}};
  for (const std::int64_t around : {1, 16, 32, 64, 128, 256, 1024, 4096}) {
    for (std::int64_t size = around - 1; size <= around + 1; ++size) {
      all.push_back({1, size});
      if (around <= 256) all.push_back({size, 1});
    }
  }
  return all;
}

/// Random streams at their borders, with K bits. The last begins shortly before the number of a
/// block no longer fits 32 bits.
inline std::vector<random_stream> streams_at_borders(int bits) {
  constexpr std::uint64_t top = ~std::uint64_t{0};
  const std::uint64_t per_block = bits <= 8 ? 16 : bits <= 16 ? 8 : 4;
  return {{0, 0, 0, std::nullopt, bits},
          {1, top, 5, 1000, bits},
          {top, 1, top - 40, std::nullopt, bits},
          {std::uint64_t{1} << 32, std::uint64_t{1} << 32, 3, 0, bits},
          {7, 8, (std::uint64_t{1} << 32) - 30, top - 2, bits},
          {9, 10, (per_block << 32) - 70, std::nullopt, bits}};
}
inline random_stream even_stream(even_draw& draws) {
  constexpr int widths[] = {1, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32};
  const int bits = even_one_of(draws, "K", widths);
  return even_one_of(draws, "random stream", streams_at_borders(bits));
}

}  // namespace samebits::support
