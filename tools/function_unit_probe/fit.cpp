// Fits one row of a function unit's table: least squares, then intervals of integers.
#include "function_unit_probe/fit.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "numerics/hardware/function_units/squarer.hpp"

namespace samebits::function_units {
namespace {

bool has_bounds(const bounds& b) { return b.lower != no_bounds.lower; }

/// X and 4 q of each operand of a row.
struct place {
  std::int64_t x;
  std::int64_t square;
};
place place_of(std::size_t i, int bits) {
  const auto x = static_cast<std::uint32_t>(i) << (17 - bits);
  return {x, std::int64_t{numerics::hopper::truncated_square(x)} << 2};
}

/// The solution of three linear equations, by elimination with the largest pivots.
std::array<double, 3> solve(std::array<std::array<double, 4>, 3> m) {
  for (std::size_t k = 0; k < 3; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < 3; ++i) {
      if (std::abs(m[i][k]) > std::abs(m[pivot][k])) pivot = i;
    }
    std::swap(m[k], m[pivot]);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == k) continue;
      const double factor = m[i][k] / m[k][k];
      for (std::size_t j = k; j < 4; ++j) m[i][j] -= factor * m[k][j];
    }
  }
  return {m[0][3] / m[0][0], m[1][3] / m[1][1], m[2][3] / m[2][2]};
}

/// b and d of the least-squares fit to the middles of the bounds.
std::array<double, 2> least_squares(std::span<const bounds> results, int bits) {
  std::array<std::array<double, 4>, 3> m{};
  const auto origin = std::find_if(results.begin(), results.end(), has_bounds)->lower;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!has_bounds(results[i])) continue;
    const place p = place_of(i, bits);
    constexpr double unit = 1 << 17;
    const double twice = static_cast<double>(results[i].lower - origin) +
                         static_cast<double>(results[i].upper - origin);
    const std::array<double, 4> row = {1, static_cast<double>(p.x) / unit,
                                       static_cast<double>(p.square) / unit, twice / 2 / unit};
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 4; ++k) m[j][k] += row[j] * row[k];
    }
  }
  const std::array<double, 3> c = solve(m);
  return {c[1], c[2]};
}

/// The interval of a for given b and d; a_min > a_max if there is none.
row_fit interval_of(std::span<const bounds> results, int bits, std::int32_t b, std::int32_t d) {
  row_fit fit{INT64_MIN, INT64_MAX, b, d};
  for (std::size_t i = 0; i < results.size() && fit.a_min <= fit.a_max; ++i) {
    if (!has_bounds(results[i])) continue;
    const place p = place_of(i, bits);
    const std::int64_t rest = b * p.x + d * p.square;
    fit.a_min = std::max(fit.a_min, results[i].lower - rest);
    fit.a_max = std::min(fit.a_max, results[i].upper - 1 - rest);
  }
  return fit;
}

}  // namespace

std::optional<row_fit> fit_row(std::span<const bounds> results) {
  const int bits = static_cast<int>(std::bit_width(results.size())) - 1;
  const auto [b, d] = least_squares(results, bits);
  std::optional<row_fit> best;
  for (std::int32_t db = -2; db <= 2; ++db) {
    for (std::int32_t dd = -2; dd <= 2; ++dd) {
      const row_fit fit = interval_of(results, bits, static_cast<std::int32_t>(std::lround(b)) + db,
                                      static_cast<std::int32_t>(std::lround(d)) + dd);
      if (fit.a_min > fit.a_max) continue;
      if (!best || fit.a_max - fit.a_min > best->a_max - best->a_min) best = fit;
    }
  }
  return best;
}

}  // namespace samebits::function_units
