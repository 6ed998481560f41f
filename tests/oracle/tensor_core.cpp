// Exact dot products with the cuts that a tensor core makes, in units far below everything.
#include "oracle/tensor_core.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "oracle/elementary.hpp"
#include "oracle/exact.hpp"

namespace samebits::oracle {
namespace {

/// Every number here is a whole multiple of 2^minimum: 2^-133 squared is the smallest product of
/// bf16, 2^-136 squared that of tf32, and cuts fall no lower than 2^-320.
constexpr int minimum = -400;

using number = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<
    1024, 1024, boost::multiprecision::signed_magnitude, boost::multiprecision::unchecked, void>>;

/// A code with the exponent that its field states: that of the smallest normal for subnormals.
struct operand {
  value_kind kind;
  bool negative;
  number value;  ///< in units of 2^minimum for sums so far; significand for factors
  int scale;     ///< of a factor: value * 2^scale
  int exponent;
};

operand operand_of(const format& f, std::uint32_t code, bool through_fp16) {
  const exact_value x = decode(f, code);
  if (x.kind != value_kind::finite || x.numerator == 0) {
    return {x.kind, x.negative, 0, 0, 0};
  }
  const int leading = static_cast<int>(msb(x.numerator)) + x.exponent;
  const int lowest = through_fp16 ? std::min(-14, f.min_normal_exponent) : f.min_normal_exponent;
  return {x.kind, x.negative, number(x.numerator), x.exponent, std::max(leading, lowest)};
}

struct term {
  number value;  ///< signed, in units of 2^minimum
  int exponent;
};

/// The terms of one step; non-finite ones as what the sum is then.
struct terms {
  std::vector<term> all;
  bool nan = false;
  bool plus = false;
  bool minus = false;

  void add_infinity(bool negative) { (negative ? minus : plus) = true; }

  void add(const operand& x, const operand& y) {
    const bool negative = x.negative != y.negative;
    const bool infinite = x.kind == value_kind::infinite || y.kind == value_kind::infinite;
    const auto is_zero = [](const operand& o) {
      return o.kind == value_kind::finite && o.value == 0;
    };
    if (x.kind == value_kind::nan || y.kind == value_kind::nan) {
      nan = true;
    } else if (infinite && (is_zero(x) || is_zero(y))) {
      nan = true;
    } else if (infinite) {
      add_infinity(negative);
    } else if (!is_zero(x) && !is_zero(y)) {
      number product = (x.value * y.value) << (x.scale + y.scale - minimum);
      if (negative) product = -product;
      all.push_back({product, x.exponent + y.exponent});
    }
  }

  void add(const operand& c) {
    if (c.kind == value_kind::nan) {
      nan = true;
    } else if (c.kind == value_kind::infinite) {
      add_infinity(c.negative);
    } else if (c.value != 0) {
      number value = c.value << (c.scale - minimum);
      if (c.negative) value = -value;
      all.push_back({value, c.exponent});
    }
  }
};

/// 2^exponent in units of 2^minimum.
number power(int exponent) { return number(1) << (exponent - minimum); }

/// The signed integer number of `unit`s in x: the nearest one, even at ties, or that toward zero.
number in_units(const number& x, const number& unit, bool to_nearest) {
  number whole = x / unit;  // toward zero
  if (!to_nearest) return whole;
  const number rest = abs(number(x - whole * unit)) * 2;
  const bool away = rest > unit || (rest == unit && abs(whole) % 2 == 1);
  if (away) whole += x < 0 ? -1 : 1;
  return whole;
}

/// The code of a sum.
std::uint64_t rounded(const tensor_unit_facts& facts, const format& f, const number& sum) {
  if (sum == 0) return 0;
  const std::uint64_t sign = sum < 0 ? std::uint64_t{1} << (f.code_bits - 1) : 0;
  const int leading = static_cast<int>(msb(number(abs(sum)))) + minimum;
  const int binade = std::max(leading, f.min_normal_exponent);
  const number unit = power(binade - facts.result_bits);
  const number value = abs(number(in_units(sum, unit, facts.to_nearest) * unit));
  if (value == 0) return 0;
  const int maximum = (1 << (f.exponent_bits - 1)) - 1;
  if (value >= power(maximum + 1)) return *f.infinity | sign;
  const int exponent = std::max(static_cast<int>(msb(value)) + minimum, f.min_normal_exponent);
  // significand in steps of the format; the hidden bit adds 1 to a field that starts at 0
  const auto significand =
      static_cast<std::uint64_t>(number(value / power(exponent - f.mantissa_bits)));
  const auto field = static_cast<std::uint64_t>(exponent - f.min_normal_exponent);
  return sign | ((field << f.mantissa_bits) + significand);
}

std::uint64_t sum_of(const tensor_unit_facts& facts, const format& f, const terms& t) {
  if (t.nan || (t.plus && t.minus)) return *f.canonical_nan;
  if (t.plus) return *f.infinity;
  if (t.minus) return *f.infinity | std::uint64_t{1} << (f.code_bits - 1);
  int largest = facts.subnormal_exponent;
  for (const term& one : t.all) largest = std::max(largest, one.exponent);
  const number unit = power(largest - facts.kept_bits);
  number sum = 0;
  for (const term& one : t.all) sum += one.value / unit * unit;
  return rounded(facts, f, sum);
}

bool is_8_bit(const format& f) { return f.storage_bits == 8; }

/// Generations that differ in their adders.
enum class generation { volta, turing_to_ada, later };

std::optional<generation> generation_of(std::string_view unit) {
  if (unit == "volta-mma") return generation::volta;
  if (unit == "turing-mma" || unit == "ampere-mma" || unit == "ada-mma") {
    return generation::turing_to_ada;
  }
  if (unit == "hopper-mma-sync" || unit == "hopper-wgmma" || unit == "blackwell-mma-sync" ||
      unit == "blackwell-tcgen05" || unit == "blackwell-rtx-mma") {
    return generation::later;
  }
  return std::nullopt;
}

}  // namespace

tensor_unit_facts facts_of(std::string_view unit, const format& a, const format& b,
                           const format& result, int products) {
  const auto g = generation_of(unit);
  if (!g) throw std::invalid_argument("oracle: no tensor core " + std::string(unit));
  if (is_8_bit(a) != is_8_bit(b) || (!is_8_bit(a) && a.name != b.name)) {
    throw std::invalid_argument("oracle: no such pairing");
  }
  tensor_unit_facts f{};
  f.products = products;
  f.kept_bits = *g == generation::volta ? 23 : *g == generation::turing_to_ada ? 24 : 25;
  // -133 = -126 - 7 with 25 bits, one more with each bit less
  f.subnormal_exponent = result.min_normal_exponent - (f.kept_bits - 18);
  // 16-bit products that one step adds: 4, 8, 16; tf32 half of them, 8-bit ones twice as many
  const int sixteen_bit = *g == generation::volta ? 4 : *g == generation::turing_to_ada ? 8 : 16;
  const int maximum = is_8_bit(a)        ? 2 * sixteen_bit
                      : a.name == "tf32" ? sixteen_bit / 2
                                         : sixteen_bit;
  f.step = std::min(products, maximum);
  f.to_nearest = result.name == "fp16";
  f.result_bits = result.mantissa_bits;
  if (!is_8_bit(a)) return f;
  if (unit == "hopper-mma-sync" || unit == "blackwell-mma-sync") {
    f.through_fp16 = true;
    f.step = products / 2;
  }
  if (unit == "ada-mma" || unit == "hopper-wgmma") {
    f.kept_bits = 13;
    if (!f.to_nearest) f.result_bits = 13;
  }
  return f;
}

std::uint64_t tensor_instruction(const tensor_unit_facts& facts, const format& a_format,
                                 std::span<const std::uint32_t> a, const format& b_format,
                                 std::span<const std::uint32_t> b, const format& result,
                                 std::uint32_t c) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!facts.through_fp16 || k % 4 < 2) order.push_back(k);
  }
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (facts.through_fp16 && k % 4 >= 2) order.push_back(k);
  }
  std::uint64_t sum = facts.through_fp16 ? 0 : c;
  const auto step = static_cast<std::size_t>(facts.step);
  for (std::size_t from = 0; from < order.size(); from += step) {
    terms t;
    t.add(operand_of(result, static_cast<std::uint32_t>(sum), false));
    for (std::size_t i = from; i < from + step; ++i) {
      t.add(operand_of(a_format, a[order[i]], facts.through_fp16),
            operand_of(b_format, b[order[i]], facts.through_fp16));
    }
    sum = sum_of(facts, result, t);
  }
  return facts.through_fp16 ? add(result, c, sum) : sum;
}

}  // namespace samebits::oracle
