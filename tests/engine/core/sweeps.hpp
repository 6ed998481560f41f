// Values of options that sweeps combine: all combinations, layouts, sizes, random streams, and their
// even choice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "engine/core/even_draw.hpp"
#include "engine/core/layout.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/quantize.hpp"

namespace samebits::support {

/// All values of an enumeration.
template <class Enum>
std::array<Enum, enum_count<Enum>> enumerators() {
  std::array<Enum, enum_count<Enum>> all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}

/// Every combination of values of some lists; the last list's values change fastest.
template <class... Lists>
auto combinations(const Lists&... lists) {
  std::vector<std::tuple<std::decay_t<decltype(*std::begin(lists))>...>> all;
  const std::size_t count = (std::size(lists) * ...);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = count;
    const auto value = [&](const auto& list) {
      rest /= std::size(list);
      return std::begin(list)[static_cast<std::ptrdiff_t>(i / rest % std::size(list))];
    };
    all.push_back(std::tuple{value(lists)...});
  }
  return all;
}

/// Every rounding mode, overflow policy and NaN policy.
inline std::vector<cast_rule> every_rule() {
  std::vector<cast_rule> all;
  for (const auto& [mode, policy, nan] :
       combinations(enumerators<rounding>(), enumerators<overflow>(), enumerators<nan_policy>())) {
    all.push_back({mode, policy, nan});
  }
  return all;
}

/// The scale rules of one level.
inline std::vector<scale_rule> one_level_rules() {
  std::vector<scale_rule> all;
  for (int i = 0; i < one_level_scale_rules; ++i) all.push_back(static_cast<scale_rule>(i));
  return all;
}

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
