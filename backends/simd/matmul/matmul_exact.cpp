// Exact dot products in fixed point: implementation. Compiled without instruction set flags.
#include "backends/simd/matmul/matmul_exact.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/dispatch/matmul_element.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/sums/dot.hpp"

namespace samebits::backends {
namespace {

using wide = __int128;

/// Elements along K that share a unit.
constexpr std::int64_t unit_block = 128;
static_assert(scale_block % unit_block == 0);

constexpr int bits_of(std::uint64_t x) { return 64 - std::countl_zero(x); }

/// The largest number of bits of a number. With it the sum of a block's products fits 128 bits.
constexpr int max_bits = 60;

/// The range of a block: its numbers are multiples of 2^unit and below 2^top. A block of zeros has
/// unit > top.
struct fixed_range {
  int unit = 1 << 20;
  int top = -(1 << 20);

  [[nodiscard]] int bits() const { return top - unit; }  ///< negative: all zeros
  void include(int lowest, int above) {
    unit = std::min(unit, lowest);
    top = std::max(top, above);
  }
};

/// Rows or columns along K in fixed point, each block with the largest unit that holds its numbers.
struct fixed_lines {
  fixed_lines(std::int64_t lines, std::int64_t along_k)
      : depth(along_k),
        blocks((depth + unit_block - 1) / unit_block),
        numbers(static_cast<std::size_t>(lines * depth)),
        block_ranges(static_cast<std::size_t>(lines * blocks)),
        ranges(static_cast<std::size_t>(lines)),
        unfit(static_cast<std::size_t>(lines)) {}

  std::int64_t depth;
  std::int64_t blocks;
  std::vector<std::int64_t> numbers;      ///< [line][k], in units of the block
  std::vector<fixed_range> block_ranges;  ///< [line][block]
  std::vector<fixed_range> ranges;        ///< of all blocks of a line
  std::vector<std::uint8_t> unfit;  ///< the line has a NaN, an Inf or a block of too many bits
};

/// Converts one block to fixed point. at(i) returns binary32 bits; returns whether it fits.
template <class At>
bool convert_block(std::int64_t count, const At& at, std::int64_t* numbers, fixed_range& range) {
  namespace f = numerics::binary32;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t x = at(i);
    if (f::magnitude(x) >= f::inf) return false;
    if (f::is_zero(x)) continue;
    const f::parts p = f::split(x);
    range.include(p.exponent + std::countr_zero(p.sig), p.exponent + bits_of(p.sig));
  }
  if (range.bits() > max_bits) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t x = at(i);
    if (f::is_zero(x)) continue;  // the numbers begin as zeros
    const f::parts p = f::split(x);
    const int up = p.exponent - range.unit;  // if negative, the bits shifted out are zeros
    const auto number = static_cast<std::int64_t>(up >= 0 ? p.sig << up : p.sig >> -up);
    numbers[i] = (x & f::sign_bit) != 0 ? -number : number;
  }
  return true;
}

/// Converts lines to fixed point. at(line, k) returns binary32 bits.
template <class At>
fixed_lines fixed_lines_of(std::int64_t lines, std::int64_t depth, int threads, const At& at) {
  fixed_lines all(lines, depth);
  for_each_item(lines, depth, threads, [&](std::int64_t line) {
    fixed_range& whole = all.ranges[static_cast<std::size_t>(line)];
    for (std::int64_t block = 0; block < all.blocks; ++block) {
      const std::int64_t k = block * unit_block;
      fixed_range& range = all.block_ranges[static_cast<std::size_t>(line * all.blocks + block)];
      const bool fits = convert_block(
          std::min(unit_block, depth - k), [&](std::int64_t i) { return at(line, k + i); },
          all.numbers.data() + line * depth + k, range);
      if (!fits) all.unfit[static_cast<std::size_t>(line)] = 1;
      whole.include(range.unit, range.top);
    }
  });
  return all;
}

/// The number sum * 2^unit.
struct fixed_sum {
  wide sum;
  int unit;

  [[nodiscard]] bool is_negative() const { return sum < 0; }
  [[nodiscard]] unsigned __int128 magnitude() const {
    return static_cast<unsigned __int128>(sum < 0 ? -sum : sum);
  }
  /// The number rounded once to nearest even. An exact zero gives +0. The magnitude is below 2^126,
  /// so that its bits above the 62 that are rounded fit 64 bits.
  [[nodiscard]] std::uint64_t round(const format_spec& to) const {
    unsigned __int128 m = magnitude();
    const auto high = static_cast<std::uint64_t>(m >> 62);
    const int down = bits_of(high);
    const bool rest = (m & ((static_cast<unsigned __int128>(1) << down) - 1)) != 0;
    const std::uint64_t sig = static_cast<std::uint64_t>(m >> down) | (rest ? 1 : 0);
    return numerics::encode_scaled(to, cast_rule{}, is_negative(), sig, unit + down, 0).code;
  }
  void add_to(numerics::exact_dot& dot) const {
    if (sum == 0) return;  // lines of zeros have no unit
    const auto high = static_cast<std::uint64_t>(magnitude() >> 64);
    dot.finite.add(is_negative(), static_cast<std::uint64_t>(magnitude()), unit);
    if (high != 0) dot.finite.add(is_negative(), high, unit + 64);
  }
};

/// The dot product in Sum, a 64-bit or 128-bit integer wide enough for it.
template <class Sum>
wide dot_of(const std::int64_t* a, const std::int64_t* b, std::int64_t count) {
  Sum sum = 0;
  for (std::int64_t k = 0; k < count; ++k) sum += static_cast<Sum>(a[k]) * b[k];
  return sum;
}

/// Exact dot products of a row and a column that fit, over parts of K that start at a multiple of
/// unit_block or lie within one.
class line_pair {
 public:
  line_pair(const fixed_lines& a, const fixed_lines& b, std::int64_t row, std::int64_t column)
      : depth_(a.depth),
        x_(a.numbers.data() + row * a.depth),
        y_(b.numbers.data() + column * b.depth),
        x_ranges_(a.block_ranges.data() + row * a.blocks),
        y_ranges_(b.block_ranges.data() + column * b.blocks),
        x_range_(a.ranges[static_cast<std::size_t>(row)]),
        y_range_(b.ranges[static_cast<std::size_t>(column)]) {}

  /// Whether sums of all blocks fit 126 bits in the smallest unit of all.
  [[nodiscard]] bool has_one_unit() const {
    return x_range_.bits() + y_range_.bits() + bits_of(static_cast<std::uint64_t>(depth_)) <= 126;
  }
  /// The dot product. Requires has_one_unit().
  [[nodiscard]] fixed_sum sum(std::int64_t k, std::int64_t count) const {
    fixed_sum all{0, x_range_.unit + y_range_.unit};
    for_each_block(k, count, [&](const fixed_sum& s) { all.sum += s.sum << (s.unit - all.unit); });
    return all;
  }
  /// The dot product. has_one_unit() may be false.
  [[nodiscard]] numerics::exact_dot dot(std::int64_t k, std::int64_t count) const {
    numerics::exact_dot all;
    if (has_one_unit()) {
      sum(k, count).add_to(all);
    } else {
      for_each_block(k, count, [&](const fixed_sum& s) { s.add_to(all); });
    }
    return all;
  }

 private:
  template <class Add>
  void for_each_block(std::int64_t k, std::int64_t count, const Add& add) const {
    for (std::int64_t at = k; at < k + count; at += unit_block) {
      const fixed_range& x = x_ranges_[at / unit_block];
      const fixed_range& y = y_ranges_[at / unit_block];
      if (x.bits() < 0 || y.bits() < 0) continue;  // all zeros
      const std::int64_t n = std::min(unit_block, k + count - at);
      const bool short_sum = x.bits() + y.bits() + bits_of(unit_block) <= 63;
      add(fixed_sum{
          short_sum ? dot_of<std::int64_t>(x_ + at, y_ + at, n) : dot_of<wide>(x_ + at, y_ + at, n),
          x.unit + y.unit});
    }
  }

  std::int64_t depth_;
  const std::int64_t* x_;
  const std::int64_t* y_;
  const fixed_range* x_ranges_;
  const fixed_range* y_ranges_;
  const fixed_range& x_range_;
  const fixed_range& y_range_;
};

/// The element of a row or a column with a NaN, an Inf or too many bits.
void unfit_element(const matmul_call& call, std::int64_t i, std::int64_t j) {
  const auto part = [&](std::int64_t k, std::int64_t count) {
    numerics::exact_dot dot;
    for (std::int64_t at = k; at < k + count; ++at) {
      numerics::add_product(dot, binary32_at(call.a, i, at), binary32_at(call.b, at, j));
    }
    return dot;
  };
  if (call.sum.kind == accumulator_kind::exact) return exact_element(call, i, j, part);
  finish_element(call, i, j, fp32_per_128_sum(call, i, j, part));
}

void fixed_element(const matmul_call& call, const line_pair& pair, std::int64_t i, std::int64_t j) {
  const bool plain = call.c.data == nullptr && call.a_scales.values.data == nullptr &&
                     call.b_scales.values.data == nullptr;
  const bool one_unit = pair.has_one_unit();
  const auto sum = [&](std::int64_t k, std::int64_t count) { return pair.sum(k, count); };
  const auto dot = [&](std::int64_t k, std::int64_t count) { return pair.dot(k, count); };
  if (call.sum.kind != accumulator_kind::exact) {
    finish_element(
        call, i, j,
        one_unit ? fp32_per_128_sum(call, i, j, sum) : fp32_per_128_sum(call, i, j, dot));
  } else if (plain && one_unit) {
    store_at(call.d, i, j, sum(0, call.a.cols).round(spec_of(call.d.format)));
  } else {
    exact_element(call, i, j, dot);
  }
}

}  // namespace

bool supports_fixed_point(const matmul_call& call) {
  const bool kind =
      call.sum.kind == accumulator_kind::exact || call.sum.kind == accumulator_kind::fp32_per_128;
  return kind && call.a.cols > 0;
}

void multiply_fixed_point(const matmul_call& call, const executor& where) {
  const std::int64_t depth = call.a.cols;
  const fixed_lines a =
      fixed_lines_of(call.a.rows, depth, where.threads,
                     [&](std::int64_t r, std::int64_t k) { return binary32_at(call.a, r, k); });
  const fixed_lines b =
      fixed_lines_of(call.b.cols, depth, where.threads,
                     [&](std::int64_t c, std::int64_t k) { return binary32_at(call.b, k, c); });
  // Tiles of D, whose rows and columns in fixed point stay in a second-level cache; smaller ones if
  // the threads would have too few, or a signal would wait for long.
  std::int64_t tile = 16;
  const auto tiles = [&] {
    return (call.d.rows + tile - 1) / tile * ((call.d.cols + tile - 1) / tile);
  };
  const auto wanted = std::int64_t{4} * thread_count(where.threads);
  while (tile > 1 && (tiles() < wanted || tile * tile * depth > std::int64_t{1} << 20)) tile /= 2;
  const std::int64_t tile_columns = (call.d.cols + tile - 1) / tile;
  const auto multiply_tile = [&](std::int64_t row, std::int64_t column) {
    for (std::int64_t i = row; i < std::min(row + tile, call.d.rows); ++i) {
      for (std::int64_t j = column; j < std::min(column + tile, call.d.cols); ++j) {
        const bool unfit =
            a.unfit[static_cast<std::size_t>(i)] != 0 || b.unfit[static_cast<std::size_t>(j)] != 0;
        unfit ? unfit_element(call, i, j) : fixed_element(call, line_pair(a, b, i, j), i, j);
      }
    }
  };
  for_each_item(tiles(), depth * tile * tile, where.threads, [&](std::int64_t t) {
    multiply_tile(t / tile_columns * tile, t % tile_columns * tile);
  });
}

}  // namespace samebits::backends
