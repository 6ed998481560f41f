// Exact dot products in fixed point: implementation. Compiled without instruction set flags.
#include "backends/simd/matmul/matmul_exact.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/dispatch/matmul_element.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/sums/dot.hpp"

namespace samebits::backends {
namespace {

using wide = __int128;

/// Exponent of the last bit of the format's smallest subnormal.
int last_bit(const format_spec& f) { return numerics::min_exponent(f) - f.mantissa_bits; }

/// The smallest exponent e such that all finite numbers are below 2^e.
int max_exponent(const format_spec& f) {
  return static_cast<int>(numerics::max_finite(f) >> f.mantissa_bits) - f.bias + 1;
}

/// Number of bits of a number in units of its format's last bit.
int fixed_bits(const format_spec& f) { return max_exponent(f) - last_bit(f); }

/// Rows or columns along K in fixed point. special[line] is set if the line contains a NaN or Inf.
struct fixed_lines {
  std::vector<std::int64_t> numbers;
  std::vector<std::uint8_t> special;
};

/// Converts lines to fixed point. at(line, k) returns binary32 bits.
template <class At>
fixed_lines fixed_lines_of(std::int64_t lines, std::int64_t depth, const format_spec& format,
                           const At& at) {
  namespace f = numerics::binary32;
  fixed_lines all{std::vector<std::int64_t>(static_cast<std::size_t>(lines * depth)),
                  std::vector<std::uint8_t>(static_cast<std::size_t>(lines))};
  const int unit = last_bit(format);
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::uint32_t x = at(line, k);
      if (f::magnitude(x) >= f::inf) {
        all.special[static_cast<std::size_t>(line)] = 1;
      } else if (!f::is_zero(x)) {
        const f::parts p = f::split(x);  // its bits below the unit are zeros
        const int up = p.exponent - unit;
        const std::uint64_t magnitude = up >= 0 ? p.sig << up : p.sig >> -up;
        const auto number = static_cast<std::int64_t>(magnitude);
        all.numbers[static_cast<std::size_t>(line * depth + k)] =
            (x & f::sign_bit) != 0 ? -number : number;
      }
    }
  }
  return all;
}

/// sum * 2^unit as an exact dot product.
numerics::exact_dot exact_of(wide sum, int unit) {
  numerics::exact_dot dot;
  const bool negative = sum < 0;
  const auto magnitude = static_cast<unsigned __int128>(negative ? -sum : sum);
  dot.finite.add(negative, static_cast<std::uint64_t>(magnitude), unit);
  dot.finite.add(negative, static_cast<std::uint64_t>(magnitude >> 64), unit + 64);
  return dot;
}

/// The dot product in Sum, a 64-bit or 128-bit integer wide enough for it.
template <class Sum>
wide dot_of(const std::int64_t* a, const std::int64_t* b, std::int64_t count) {
  Sum sum = 0;
  for (std::int64_t k = 0; k < count; ++k) sum += static_cast<Sum>(a[k]) * b[k];
  return sum;
}

}  // namespace

bool supports_fixed_point(const matmul_call& call) {
  const bool kind =
      call.sum.kind == accumulator_kind::exact || call.sum.kind == accumulator_kind::fp32_per_128;
  constexpr int max_bits = 44;                           // fp16 has 40, e5m2 32, bf16 261
  constexpr std::int64_t max_k = std::int64_t{1} << 38;  // 2 * 44 + 38 bits
  return kind && call.a.cols > 0 && call.a.cols <= max_k &&
         fixed_bits(spec_of(call.a.format)) <= max_bits &&
         fixed_bits(spec_of(call.b.format)) <= max_bits;
}

void multiply_fixed_point(const matmul_call& call, const executor& where) {
  const std::int64_t depth = call.a.cols;
  const format_spec a_format = spec_of(call.a.format);
  const format_spec b_format = spec_of(call.b.format);
  const fixed_lines a =
      fixed_lines_of(call.a.rows, depth, a_format,
                     [&](std::int64_t r, std::int64_t k) { return binary32_at(call.a, r, k); });
  const fixed_lines b =
      fixed_lines_of(call.b.cols, depth, b_format,
                     [&](std::int64_t c, std::int64_t k) { return binary32_at(call.b, k, c); });
  const int unit = last_bit(a_format) + last_bit(b_format);
  const int bits = fixed_bits(a_format) + fixed_bits(b_format);
  const std::int64_t cols = call.d.cols;
  const auto element = [&](std::int64_t i, std::int64_t j) {
    const bool special =
        a.special[static_cast<std::size_t>(i)] != 0 || b.special[static_cast<std::size_t>(j)] != 0;
    const auto part = [&](std::int64_t k, std::int64_t count) {
      if (special) {
        numerics::exact_dot dot;
        for (std::int64_t at = k; at < k + count; ++at) {
          numerics::add_product(dot, binary32_at(call.a, i, at), binary32_at(call.b, at, j));
        }
        return dot;
      }
      const std::int64_t* x = a.numbers.data() + i * depth + k;
      const std::int64_t* y = b.numbers.data() + j * depth + k;
      const bool short_sum = bits <= 40 && count <= std::int64_t{1} << 22;
      return exact_of(short_sum ? dot_of<std::int64_t>(x, y, count) : dot_of<wide>(x, y, count),
                      unit);
    };
    if (call.sum.kind == accumulator_kind::exact) return exact_element(call, i, j, part);
    finish_element(call, i, j, fp32_per_128_sum(call, i, j, part));
  };
  const std::int64_t worth = elements_worth_a_thread / depth;
  for_each_part(
      call.d.rows * cols, where.threads,
      [&](element_range range) {
        for (std::int64_t e = range.begin; e < range.end; ++e) element(e / cols, e % cols);
      },
      std::max<std::int64_t>(1, worth));
}

}  // namespace samebits::backends
