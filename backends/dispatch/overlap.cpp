// Overlap: searches bounded sums of multiples of strides.
#include "backends/dispatch/overlap.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "samebits/core/format.hpp"

namespace samebits::backends {
namespace {

using wide = __int128;

wide floor_of(wide x, wide y) { return x >= 0 ? x / y : -((-x + y - 1) / y); }
wide ceil_of(wide x, wide y) { return -floor_of(-x, y); }

wide gcd_of(wide a, wide b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

/// The multiples x * stride for each x in [0, maximum]; both are positive.
struct multiple {
  wide stride;
  wide maximum;
  [[nodiscard]] wide reach() const { return stride * maximum; }
};

/// A sum of up to four multiples.
struct multiples {
  std::array<multiple, 4> all;
  std::size_t count = 0;

  void add(const multiple& m) {
    for (std::size_t i = 0; i < count; ++i) {
      if (all[i].stride != m.stride) continue;
      all[i].maximum += m.maximum;
      return;
    }
    all[count++] = m;
  }
  [[nodiscard]] std::span<const multiple> span() const { return std::span(all).first(count); }
};

/// The bytes of a view as blocks of `size` bytes each. The blocks start at base + i * s + j * t for
/// all i and j in their ranges; s and t are the strides in `starts`, of which there are 0 to 2.
struct blocks {
  wide base;
  wide size;
  multiples starts;
};

blocks blocks_of(const const_matrix_view& v) {
  const wide bytes = storage_bytes(v.format);
  multiple inner = {v.col_stride * bytes, v.cols - 1};
  multiple outer = {v.row_stride * bytes, v.rows - 1};
  if (inner.stride > outer.stride) std::swap(inner, outer);
  blocks b{static_cast<wide>(reinterpret_cast<std::uintptr_t>(v.data)), bytes, {}};
  // If the outer steps continue the inner steps without a gap, one multiple describes all starts.
  const bool both = inner.reach() != 0 && outer.reach() != 0;
  if (both && outer.stride % inner.stride == 0 && outer.stride <= inner.reach() + inner.stride) {
    inner.maximum += outer.reach() / inner.stride;
    outer.maximum = 0;
  }
  for (const multiple& m : {inner, outer}) {
    if (m.reach() == 0) continue;
    if (m.stride <= b.size) {  // no gaps
      b.size += m.reach();
    } else {
      b.starts.add(m);
    }
  }
  return b;
}

/// The smallest x >= 0 with low <= a * x mod m <= high, if there is one. Requires 0 <= a < m and 0
/// <= low <= high < m. As in Euclid's algorithm, the problem for (a, m) reduces to the problem for
/// (-m mod a, a).
std::optional<wide> first_within(wide a, wide m, wide low, wide high) {
  if (low == 0) return 0;
  if (a == 0) return std::nullopt;
  if (2 * a > m) return first_within(m - a, m, m - high, m - low);
  const wide x = ceil_of(low, a);
  if (x * a <= high) return x;
  // Find y with a multiple of a in m * y + [low, high]. For y = 0 there is none.
  const auto y = first_within((a - m % a) % a, a, low % a, high % a);
  if (!y) return std::nullopt;
  return ceil_of(low + m * *y, a);
}

/// Whether some sum of two multiples lies in [low, high].
bool reaches(const multiple& p, const multiple& q, wide low, wide high) {
  // x, the factor of p, must satisfy: [low, high] - x * p.stride intersects [0, q.reach()].
  const wide first = std::max<wide>(0, ceil_of(low - q.reach(), p.stride));
  const wide last = std::min(p.maximum, floor_of(high, p.stride));
  if (first > last) return false;
  const wide width = high - low;
  if (width + 1 >= q.stride) return true;  // every such interval contains a multiple of q.stride
  const wide rest =
      (high - first * p.stride) - floor_of(high - first * p.stride, q.stride) * q.stride;
  if (rest <= width) return true;
  const auto further = first_within(p.stride % q.stride, q.stride, rest - width, rest);
  return further && first + *further <= last;
}

/// The range of factors of `m` for which the sum of all multiples can lie in [low, high]. `reach`
/// is the largest value of the sum.
std::pair<wide, wide> candidates(const multiple& m, wide reach, wide low, wide high) {
  return {std::max<wide>(0, ceil_of(low - (reach - m.reach()), m.stride)),
          std::min(m.maximum, floor_of(high, m.stride))};
}

/// Whether some sum of multiples lies in [low, high].
sharing search(multiples terms, wide low, wide high, std::int64_t& steps) {
  if (--steps < 0) return sharing::undecided;
  wide reach = 0;
  for (const multiple& m : terms.span()) reach += m.reach();
  low = std::max<wide>(low, 0);
  high = std::min(high, reach);
  if (low > high) return sharing::none;
  if (terms.count == 0) return sharing::some;
  if (terms.count == 2) {
    return reaches(terms.all[0], terms.all[1], low, high) ? sharing::some : sharing::none;
  }
  wide common = 0;
  for (const multiple& m : terms.span()) common = gcd_of(m.stride, common);
  if (floor_of(high, common) * common < low) return sharing::none;
  if (terms.count == 1) return sharing::some;
  const auto tries = [&](const multiple& m) {
    const auto [first, last] = candidates(m, reach, low, high);
    return last - first;
  };
  const auto fewest = std::min_element(
      terms.all.begin(), terms.all.begin() + static_cast<std::ptrdiff_t>(terms.count),
      [&](const multiple& x, const multiple& y) { return tries(x) < tries(y); });
  const multiple tried = *fewest;
  *fewest = terms.all[--terms.count];
  const auto [first, last] = candidates(tried, reach, low, high);
  for (wide x = first; x <= last; ++x) {
    const sharing found = search(terms, low - x * tried.stride, high - x * tried.stride, steps);
    if (found != sharing::none) return found;
  }
  return sharing::none;
}

}  // namespace

bool repeats_elements(const const_matrix_view& v) {
  if (v.rows == 0 || v.cols == 0) return false;
  if (v.rows > 1 && v.row_stride == 0) return true;
  if (v.cols > 1 && v.col_stride == 0) return true;
  if (v.rows == 1 || v.cols == 1) return false;
  // The first coincidence of elements (r, c) and (r + dr, c - dc) is at dr * row_stride = dc *
  // col_stride.
  const std::int64_t common = std::gcd(v.row_stride, v.col_stride);
  return v.col_stride / common < v.rows && v.row_stride / common < v.cols;
}

sharing sharing_of(const const_matrix_view& a, const const_matrix_view& b, std::int64_t& steps) {
  if (a.rows == 0 || a.cols == 0 || b.rows == 0 || b.cols == 0) return sharing::none;
  const blocks x = blocks_of(a);
  const blocks y = blocks_of(b);
  wide low = y.base - x.base - (x.size - 1);
  wide high = y.base - x.base + (y.size - 1);
  multiples terms = x.starts;
  for (const multiple& m : y.starts.span()) {  // counted from the last: -k becomes maximum - k
    low += m.reach();
    high += m.reach();
    terms.add(m);
  }
  return search(terms, low, high, steps);
}

extent extent_of(const const_matrix_view& v, std::size_t position, bool written) {
  const auto begin = reinterpret_cast<std::uintptr_t>(v.data);
  const std::int64_t last = (v.rows - 1) * v.row_stride + (v.cols - 1) * v.col_stride;
  return {begin, begin + static_cast<std::uintptr_t>((last + 1) * storage_bytes(v.format)),
          position, written};
}

}  // namespace samebits::backends
