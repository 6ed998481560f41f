// numerics/sums/dot.hpp and numerics/sums/exact_sum.hpp at compile time: roundings that hang on one
// far bit, the ends of the sums' range, and NaN, Inf and zeros among products and scales.
#include "numerics/sums/dot.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace samebits::numerics {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float smallest = 0x1p-149f;
constexpr float largest = 0x1.fffffep127f;

constexpr std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

struct product {
  float a;
  float b;
};
using products = std::initializer_list<product>;

constexpr exact_dot dot_of(products terms) {
  exact_dot dot;
  for (const product& t : terms) add_product(dot, bits(t.a), bits(t.b));
  return dot;
}

template <class Dot>
constexpr bool is(const Dot& dot, double expected) {
  return dot.round(spec_of(format_id::fp64)) == std::bit_cast<std::uint64_t>(expected);
}
template <class Dot>
constexpr bool is(const Dot& dot, float expected) {
  return dot.round(spec_of(format_id::fp32)) == bits(expected);
}
template <class Dot>
constexpr bool is_canonical_nan(const Dot& dot) {
  return dot.round(spec_of(format_id::fp32)) == binary32::nan;
}

// Half of the last bit beside 1, and another bit anywhere below it, or none.
constexpr bool rounds_up(product last) {
  constexpr product half = {0x1p-12f, 0x1p-12f};
  const product minus_half = {-half.a, half.b};
  const product minus_last = {-last.a, last.b};
  return is(dot_of({{1, 1}, half, last}), 0x1.000002p0f) &&
         is(dot_of({{-1, 1}, minus_half, minus_last}), -0x1.000002p0f) &&
         is(dot_of({{1, 1}, half, minus_last}), 1.0f);
}
static_assert(is(dot_of({{1, 1}, {0x1p-12f, 0x1p-12f}}), 1.0f));
static_assert(is(dot_of({{1, 0x1.000002p0f}, {0x1p-12f, 0x1p-12f}}), 0x1.000004p0f));
static_assert(rounds_up({0x1p-30f, 0x1p-31f}));
static_assert(rounds_up({0x1p-31f, 0x1p-31f}));  // the last two of 64 bits from the leading one on
static_assert(rounds_up({0x1p-31f, 0x1p-32f}));
static_assert(rounds_up({0x1p-32f, 0x1p-32f}));  // the first one below them
static_assert(rounds_up({0x1p-44f, 0x1p-44f}));
static_assert(rounds_up({0x1p-44f, 0x1p-45f}));
static_assert(rounds_up({0x1p-50f, 0x1p-50f}));
static_assert(rounds_up({0x1p-100f, 0x1p-100f}));
static_assert(rounds_up({smallest, smallest}));
static_assert(is(dot_of({{1, 1}, {0x1p-26f, 0x1p-27f}, {smallest, smallest}}), 1 + 0x1p-52));

// From one end of the range to the other, and back to nothing.
static_assert(is(dot_of({{smallest, smallest}}), 0x1p-298));
static_assert(is(dot_of({{smallest, -smallest}}), -0x1p-298));
static_assert(is(dot_of({{largest, largest}, {smallest, -smallest}}), 0x1.fffffc000002p255));
static_assert(is(dot_of({{largest, largest}, {smallest, -smallest}, {-largest, largest}}),
                 -0x1p-298));
static_assert(is(dot_of({{largest, largest}, {-largest, largest}}), 0.0f));
static_assert(is(dot_of({{-largest, largest}}), -inf));
static_assert(is(dot_of({}), 0.0f) && is(dot_of({{-0.0f, 1}}), 0.0f));

template <class Sum>
constexpr bool holds(int exponent) {
  Sum sum;
  sum.add(false, 1, exponent);
  if (sum.is_negative()) return false;
  sum.add(true, 1, Sum::lowest);
  sum.add(true, 1, exponent);
  return sum.is_negative() && sum.magnitude().limb(0) == 1 && sum.magnitude().limb(1) == 0;
}
static_assert(holds<product_sum>(256 + 64));  // 2^64 of the largest products
static_assert(holds<scaled_product_sum>(576));
// only the lowest bit of the top limb is set: the sum is positive
static_assert(holds<product_sum>(product_sum::lowest + 64 * (product_sum::limbs - 1)));
static_assert(holds<scaled_product_sum>(scaled_product_sum::lowest +
                                        64 * (scaled_product_sum::limbs - 1)));

static_assert(is(dot_of({{inf, -1}}), -inf) && is(dot_of({{-inf, -1}, {largest, -largest}}), inf));
static_assert(is_canonical_nan(dot_of({{inf, 0}})) && is_canonical_nan(dot_of({{-0.0f, inf}})));
static_assert(is_canonical_nan(dot_of({{nan, 1}})) && is_canonical_nan(dot_of({{1, -nan}})));
static_assert(is_canonical_nan(dot_of({{inf, 1}, {inf, -1}})));
static_assert(!dot_of({{inf, 1}, {inf, -1}}).is_inf());

constexpr exact_scaled_dot scaled_dot(products terms, float a, float b) {
  exact_scaled_dot dot;
  add_scaled_part(dot, dot_of(terms), bits(a), bits(b));
  return dot;
}
static_assert(is(scaled_dot({{1, 3}}, 0.5f, -0.25f), -0.375f));
static_assert(is(scaled_dot({{1, -3}}, -0.5f, 0.25f), 0.375f));
// the smallest of all, 2^-596, is what makes a tie beside 1 round up
static_assert(is(scaled_dot({{smallest, smallest}}, smallest, smallest), 0x1p-596));
constexpr bool counts_the_smallest() {
  exact_scaled_dot dot = scaled_dot({{1, 1}, {0x1p-12f, 0x1p-12f}}, 1, 1);
  const bool tie = is(dot, 1.0f);
  add_scaled_part(dot, dot_of({{smallest, smallest}}), bits(smallest), bits(smallest));
  return tie && is(dot, 0x1.000002p0f);
}
static_assert(counts_the_smallest());
static_assert(is(scaled_dot({{largest, largest}}, 0x1p-126f, 0x1p-126f), 0x1.fffffc000002p3));
static_assert(is(scaled_dot({{largest, largest}}, largest, -largest), -0x1.fffff800000cp511));

// an infinite scale of something has its sign; of nothing, or beside a scale of 0, it is NaN
static_assert(is(scaled_dot({{1, 1}}, inf, -1), -inf) && is(scaled_dot({{1, -1}}, inf, 1), -inf));
static_assert(is(scaled_dot({{-1, 1}}, -1, inf), inf));
static_assert(is(scaled_dot({{0x1p52f, 0x1p52f}}, inf, 1), inf));
static_assert(is(scaled_dot({{smallest, smallest}}, inf, 1), inf));
static_assert(is(scaled_dot({{inf, 1}}, inf, 1), inf) && is(scaled_dot({{inf, -1}}, 1, -2), inf));
static_assert(is_canonical_nan(scaled_dot({}, inf, 1)));
static_assert(is_canonical_nan(scaled_dot({{1, 1}, {-1, 1}}, 1, -inf)));
static_assert(is_canonical_nan(scaled_dot({{1, 1}}, inf, 0)));
static_assert(is_canonical_nan(scaled_dot({{1, 1}}, -0.0f, inf)));
static_assert(is_canonical_nan(scaled_dot({{inf, 1}}, 0, 1)));
static_assert(is_canonical_nan(scaled_dot({{1, 1}}, nan, 1)));
static_assert(is_canonical_nan(scaled_dot({{1, 1}}, 1, -nan)));
static_assert(is_canonical_nan(scaled_dot({{nan, 1}}, 0, 1)));
static_assert(is(scaled_dot({{1, 1}}, 0, 1), 0.0f) && is(scaled_dot({{1, 1}}, -0.0f, 1), 0.0f));

constexpr exact_scaled_dot with_number(float c) {
  exact_scaled_dot dot = scaled_dot({{1, 1}}, 1, 1);
  add_number(dot, bits(c));
  return dot;
}
static_assert(is(with_number(-1), 0.0f) && is(with_number(-0.0f), 1.0f));
static_assert(is(with_number(smallest), 1.0f) && is(with_number(-smallest), 1.0f));
static_assert(is(with_number(inf), inf) && is(with_number(-inf), -inf));
static_assert(is_canonical_nan(with_number(nan)));

TEST(Dot, AtRunTimeAsAtCompileTime) {
  const volatile float minus_one = -1, infinity = inf;
  EXPECT_TRUE(is(with_number(minus_one), 0.0f));
  EXPECT_TRUE(is(with_number(infinity), inf));
}

}  // namespace
}  // namespace samebits::numerics
