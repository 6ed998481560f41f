// Tests of the oracle's conversions: values worked by hand from the contract, and hardware
// binary32.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "oracle/convert.hpp"
#include "oracle/test_support.hpp"

namespace samebits::oracle {
namespace {

using testing::cast;
using testing::random_codes;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

constexpr cast_rule nearest_away{rounding::nearest_away};
constexpr cast_rule toward_zero{rounding::toward_zero};
constexpr cast_rule upward{rounding::upward};
constexpr cast_rule downward{rounding::downward};
constexpr cast_rule to_odd{rounding::to_odd};
constexpr cast_rule saturate{rounding::nearest_even, overflow::saturate};
constexpr cast_rule saturate_finite{rounding::nearest_even, overflow::saturate_finite};
constexpr cast_rule keep_nan_sign{rounding::nearest_even, overflow::ieee,
                                  nan_policy::preserve_sign};

TEST(OracleConvert, TiesAtTheTop) {
  EXPECT_EQ(cast("e4m3", 464), 0x7Eu);
  EXPECT_EQ(cast("e4m3", std::nextafter(464, 500)), 0x7Fu);
  EXPECT_EQ(cast("e4m3", -464), 0xFEu);
  EXPECT_EQ(cast("e4m3", 464, nearest_away), 0x7Fu);
  EXPECT_EQ(cast("e4m3", std::nextafter(464, 0), nearest_away), 0x7Eu);
  EXPECT_EQ(cast("e5m2", 61440), 0x7Cu);
  EXPECT_EQ(cast("e5m2", std::nextafter(61440, 0)), 0x7Bu);
  EXPECT_EQ(cast("e5m2", -61440, nearest_away), 0xFCu);
  EXPECT_EQ(cast("fp16", 65520), 0x7C00u);
  EXPECT_EQ(cast("fp16", std::nextafter(65520, 0)), 0x7BFFu);
  EXPECT_EQ(cast("e4m3fnuz", 248), 0x80u);
  EXPECT_EQ(cast("e4m3fnuz", std::nextafter(248, 0)), 0x7Fu);
  EXPECT_EQ(cast("e4m3fnuz", -240), 0xFFu);
}

TEST(OracleConvert, TiesInside) {
  EXPECT_EQ(cast("e2m1", 2.5), 4u);  // 2 has even q
  EXPECT_EQ(cast("e2m1", 3.5), 6u);
  EXPECT_EQ(cast("e2m1", 2.5, nearest_away), 5u);
  EXPECT_EQ(cast("e2m1", -2.5, nearest_away), 13u);
  EXPECT_EQ(cast("e2m1", 0.25), 0u);
  EXPECT_EQ(cast("e2m1", -0.25), 8u);
  EXPECT_EQ(cast("e2m1", 0.25, nearest_away), 1u);
  EXPECT_EQ(cast("e2m1", 0.75), 2u);  // carries from the subnormals to the least normal
  EXPECT_EQ(cast("e2m1", 1.75), 4u);  // carries into the next binade
  EXPECT_EQ(cast("fp16", 0x1p-25), 0u);
  EXPECT_EQ(cast("fp16", 0x1.8p-24), 2u);
}

TEST(OracleConvert, DirectedModesActOnTheSignedValue) {
  EXPECT_EQ(cast("e2m1", 2.1, upward), 5u);
  EXPECT_EQ(cast("e2m1", 2.1, downward), 4u);
  EXPECT_EQ(cast("e2m1", -2.1, upward), 12u);
  EXPECT_EQ(cast("e2m1", -2.1, downward), 13u);
  EXPECT_EQ(cast("e2m1", -2.9, toward_zero), 12u);
  EXPECT_EQ(cast("e4m3", 1e-30, upward), 0x01u);
  EXPECT_EQ(cast("e4m3", -1e-30, upward), 0x80u);
  EXPECT_EQ(cast("e4m3", -1e-30, downward), 0x81u);
}

TEST(OracleConvert, ToOdd) {
  EXPECT_EQ(cast("e4m3", 1e-30, to_odd), 0x01u);
  EXPECT_EQ(cast("e4m3", -1e-30, to_odd), 0x81u);
  EXPECT_EQ(cast("e4m3", 449, to_odd), 0x7Eu);
  EXPECT_EQ(cast("e4m3", 1e30, to_odd), 0x7Eu);
  EXPECT_EQ(cast("e2m1", 2.1, to_odd), 5u);
  EXPECT_EQ(cast("e2m1", 3.9, to_odd), 5u);
  EXPECT_EQ(cast("e2m1", 4.0, to_odd), 6u);
  EXPECT_EQ(cast("fp32", 1 + 0x1p-40, to_odd), 0x3F800001u);
  EXPECT_EQ(cast("fp32", 1 + 0x1p-22 - 0x1p-40, to_odd), 0x3F800001u);
}

struct extreme {
  const char* to;
  std::uint64_t max, neg_max;        ///< saturated
  std::uint64_t beyond, neg_beyond;  ///< Inf, else the canonical NaN, else max
};

constexpr extreme extremes[] = {
    {"fp32", 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000},
    {"tf32", 0x7F7FE000, 0xFF7FE000, 0x7F800000, 0xFF800000},
    {"fp16", 0x7BFF, 0xFBFF, 0x7C00, 0xFC00},
    {"bf16", 0x7F7F, 0xFF7F, 0x7F80, 0xFF80},
    {"e4m3", 0x7E, 0xFE, 0x7F, 0x7F},
    {"e5m2", 0x7B, 0xFB, 0x7C, 0xFC},
    {"e3m2", 0x1F, 0x3F, 0x1F, 0x3F},
    {"e2m3", 0x1F, 0x3F, 0x1F, 0x3F},
    {"e2m1", 0x07, 0x0F, 0x07, 0x0F},
    {"e4m3fnuz", 0x7F, 0xFF, 0x80, 0x80},
    {"e5m2fnuz", 0x7F, 0xFF, 0x80, 0x80},
    {"e8m0", 0xFE, 0xFE, 0xFF, 0xFF},
};

TEST(OracleConvert, OverflowOfFiniteValues) {
  for (const extreme& e : extremes) {
    SCOPED_TRACE(e.to);
    EXPECT_EQ(cast(e.to, 1e300), e.beyond);
    EXPECT_EQ(cast(e.to, -1e300), e.neg_beyond);
    EXPECT_EQ(cast(e.to, 1e300, nearest_away), e.beyond);
    EXPECT_EQ(cast(e.to, 1e300, upward), e.beyond);
    EXPECT_EQ(cast(e.to, 1e300, downward), e.max);
    EXPECT_EQ(cast(e.to, 1e300, toward_zero), e.max);
    EXPECT_EQ(cast(e.to, -1e300, toward_zero), e.neg_max);
    EXPECT_EQ(cast(e.to, 1e300, to_odd), e.max);
    EXPECT_EQ(cast(e.to, -1e300, to_odd), e.neg_max);
    EXPECT_EQ(cast(e.to, 1e300, {rounding::stochastic}), e.beyond);
    // e8m0 ignores the sign: upward is away from zero there.
    const bool has_sign = std::string_view(e.to) != "e8m0";
    EXPECT_EQ(cast(e.to, -1e300, upward), has_sign ? e.neg_max : e.beyond);
    EXPECT_EQ(cast(e.to, -1e300, downward), has_sign ? e.neg_beyond : e.max);
    for (const rounding mode : deterministic_modes) {
      EXPECT_EQ(cast(e.to, 1e300, {mode, overflow::saturate}), e.max);
      EXPECT_EQ(cast(e.to, -1e300, {mode, overflow::saturate}), e.neg_max);
      EXPECT_EQ(cast(e.to, 1e300, {mode, overflow::saturate_finite}), e.max);
      EXPECT_EQ(cast(e.to, -1e300, {mode, overflow::saturate_finite}), e.neg_max);
    }
  }
}

TEST(OracleConvert, InfinityInEveryMode) {
  for (const extreme& e : extremes) {
    SCOPED_TRACE(e.to);
    for (int mode = 0; mode < enum_count<rounding>; ++mode) {
      const auto round = static_cast<rounding>(mode);
      EXPECT_EQ(cast(e.to, infinity, {round, overflow::ieee}), e.beyond);
      EXPECT_EQ(cast(e.to, -infinity, {round, overflow::ieee}), e.neg_beyond);
      EXPECT_EQ(cast(e.to, infinity, {round, overflow::saturate_finite}), e.beyond);
      EXPECT_EQ(cast(e.to, -infinity, {round, overflow::saturate_finite}), e.neg_beyond);
      EXPECT_EQ(cast(e.to, infinity, {round, overflow::saturate}), e.max);
      EXPECT_EQ(cast(e.to, -infinity, {round, overflow::saturate}), e.neg_max);
    }
  }
}

struct nan_row {
  const char* to;
  std::uint64_t canonical, negative_kept;
};

constexpr nan_row nans[] = {
    {"fp64", 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF},
    {"fp32", 0x7FFFFFFF, 0xFFFFFFFF},
    {"tf32", 0x7FFFE000, 0xFFFFE000},
    {"fp16", 0x7FFF, 0xFFFF},
    {"bf16", 0x7FFF, 0xFFFF},
    {"e4m3", 0x7F, 0xFF},
    {"e5m2", 0x7F, 0xFF},
    {"e3m2", 0x1F, 0x1F},
    {"e2m3", 0x1F, 0x1F},
    {"e2m1", 0x07, 0x07},
    {"e4m3fnuz", 0x80, 0x80},
    {"e5m2fnuz", 0x80, 0x80},
    {"e8m0", 0xFF, 0xFF},
};

TEST(OracleConvert, Nan) {
  for (const nan_row& n : nans) {
    SCOPED_TRACE(n.to);
    EXPECT_EQ(cast(n.to, nan_value), n.canonical);
    EXPECT_EQ(cast(n.to, std::copysign(nan_value, -1.0)), n.canonical);
    EXPECT_EQ(cast(n.to, nan_value, keep_nan_sign), n.canonical);
    EXPECT_EQ(cast(n.to, std::copysign(nan_value, -1.0), keep_nan_sign), n.negative_kept);
    // A signalling NaN whose payload lies in the lowest bit alone.
    EXPECT_EQ(convert(format_named("fp32"), format_named(n.to), 0x7F800001, saturate), n.canonical);
    // The NaN of fnuz has no sign to keep.
    EXPECT_EQ(convert(format_named("e4m3fnuz"), format_named(n.to), 0x80, keep_nan_sign),
              n.canonical);
  }
  EXPECT_EQ(cast("e4m3", -1e30, keep_nan_sign), 0xFFu);
  EXPECT_EQ(cast("e4m3", -infinity, keep_nan_sign), 0xFFu);
  EXPECT_EQ(cast("e4m3", -infinity), 0x7Fu);
  EXPECT_EQ(cast("e4m3fnuz", -1e30, keep_nan_sign), 0x80u);
}

TEST(OracleConvert, SignsOfZero) {
  for (const char* to :
       {"fp64", "fp32", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}) {
    const format& f = format_named(to);
    EXPECT_EQ(cast(to, -0.0), std::uint64_t{1} << (f.code_bits - 1)) << to;
    EXPECT_EQ(cast(to, 0.0), 0u) << to;
  }
  EXPECT_EQ(cast("e4m3fnuz", -0.0), 0u);
  EXPECT_EQ(cast("e5m2fnuz", -1e-30), 0u);
  EXPECT_EQ(cast("e5m2fnuz", -1e-30, upward), 0u);
  EXPECT_EQ(cast("e5m2fnuz", -1e-30, downward), 0x81u);
  EXPECT_EQ(cast("e4m3fnuz", -1e-30, to_odd), 0x81u);
}

TEST(OracleConvert, E8m0) {
  EXPECT_EQ(cast("e8m0", 1), 0x7Fu);
  EXPECT_EQ(cast("e8m0", -1), 0x7Fu);
  EXPECT_EQ(cast("e8m0", 1.5), 0x80u);
  EXPECT_EQ(cast("e8m0", std::nextafter(1.5, 0)), 0x7Fu);
  EXPECT_EQ(cast("e8m0", 1.5, nearest_away), 0x80u);
  for (const double x : {1.999, -1.999}) {
    EXPECT_EQ(cast("e8m0", x, toward_zero), 0x7Fu);
    EXPECT_EQ(cast("e8m0", x, downward), 0x7Fu);
    EXPECT_EQ(cast("e8m0", x, to_odd), 0x7Fu);
  }
  EXPECT_EQ(cast("e8m0", 1.001, upward), 0x80u);
  EXPECT_EQ(cast("e8m0", -1.001, upward), 0x80u);
  for (int mode = 0; mode < enum_count<rounding>; ++mode) {
    const cast_rule rule{static_cast<rounding>(mode)};
    for (const double x : {0.0, -0.0, 1e-300, -1e-300, 0x1.8p-128, 0x1p-127}) {
      EXPECT_EQ(cast("e8m0", x, rule, {0xFFFFFFFF, 32}), 0x00u) << x;
    }
    EXPECT_EQ(cast("e8m0", 0x1p127, rule, {0xFFFFFFFF, 32}), 0xFEu);
    EXPECT_EQ(cast("e8m0", 0x1p-126, rule, {0xFFFFFFFF, 32}), 0x01u);
  }
  EXPECT_EQ(cast("e8m0", 0x1.000001p-127, upward), 0x01u);
  EXPECT_EQ(cast("e8m0", 0x1.8p-127), 0x01u);
  EXPECT_EQ(cast("e8m0", 0x1.7p127), 0xFEu);
  EXPECT_EQ(cast("e8m0", 0x1.8p127), 0xFFu);
  EXPECT_EQ(cast("e8m0", 0x1.8p127, toward_zero), 0xFEu);
  EXPECT_EQ(cast("e8m0", 0x1.8p127, saturate), 0xFEu);
  EXPECT_EQ(cast("e8m0", 0x1.8p127, saturate_finite), 0xFEu);
  EXPECT_EQ(cast("e8m0", 1.25, {rounding::stochastic}, {0xC0000000, 32}), 0x80u);
  EXPECT_EQ(cast("e8m0", 1.25, {rounding::stochastic}, {0xBFFFFFFF, 32}), 0x7Fu);
  EXPECT_EQ(convert(format_named("e8m0"), format_named("fp32"), 0x00, {}), 0x00400000u);
  EXPECT_EQ(convert(format_named("e8m0"), format_named("fp16"), 0x00, {}), 0u);
}

TEST(OracleConvert, StochasticCountsAreExact) {
  const cast_rule stochastic{rounding::stochastic};
  // 1 + k/64 to e4m3 (spacing 1/8) lies k/8 of the way up: k * 2^K / 8 of the words go up.
  for (int k = 0; k <= 8; ++k) {
    for (const int count : {3, 8}) {
      const std::uint32_t words = std::uint32_t{1} << count;
      std::uint32_t ups = 0;
      for (std::uint32_t r = 0; r < words; ++r) {
        const std::uint64_t code = cast("e4m3", 1 + k / 64.0, stochastic, {r, count});
        ASSERT_TRUE(code == 0x38 || code == 0x39);
        ups += code == 0x39 ? 1u : 0u;
      }
      EXPECT_EQ(ups, static_cast<std::uint32_t>(k) * words / 8);
    }
  }
  // floor(v * 2^K): with K = 1, v just below 1/2 never goes up, v = 1/2 does for R = 1.
  EXPECT_EQ(cast("e4m3", std::nextafter(1.0625, 1), stochastic, {1, 1}), 0x38u);
  EXPECT_EQ(cast("e4m3", 1.0625, stochastic, {1, 1}), 0x39u);
  EXPECT_EQ(cast("e4m3", 1.0625, stochastic, {0, 1}), 0x38u);
  EXPECT_EQ(cast("e4m3", -1.0625, stochastic, {1, 1}), 0xB9u);
  // Subnormal grid, the top and the values that are never randomised.
  EXPECT_EQ(cast("e4m3", 0x1p-41, stochastic, {0xFFFFFFFF, 32}), 0x01u);
  EXPECT_EQ(cast("e4m3", 0x1p-42, stochastic, {0xFFFFFFFF, 32}), 0x00u);
  EXPECT_EQ(cast("e4m3", 464, stochastic, {0x80000000, 32}), 0x7Fu);
  EXPECT_EQ(cast("e4m3", 464, stochastic, {0x7FFFFFFF, 32}), 0x7Eu);
  EXPECT_EQ(cast("e4m3", 464, {rounding::stochastic, overflow::saturate}, {~0u, 32}), 0x7Eu);
  EXPECT_EQ(cast("e4m3", 448, stochastic, {0xFFFFFFFF, 32}), 0x7Eu);
  EXPECT_EQ(cast("e4m3", -0.0, stochastic, {0xFFFFFFFF, 32}), 0x80u);
}

TEST(OracleConvert, EveryFiniteCodeSurvivesItsOwnFormat) {
  for (const format& f : format_table) {
    if (f.storage_bits > 16) continue;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << f.code_bits; ++code) {
      if (decode(f, code).kind == value_kind::nan) continue;
      for (int mode = 0; mode < enum_count<rounding>; ++mode) {
        ASSERT_EQ(convert(f, f, code, {static_cast<rounding>(mode)}, {0xFFFFFFFF, 32}), code)
            << f.name;
      }
      // fp64 holds every value of the table's other formats.
      const std::uint64_t wide = convert(f, format_named("fp64"), code, {});
      ASSERT_EQ(convert(format_named("fp64"), f, wide, {}), code) << f.name;
    }
  }
}

TEST(OracleConvert, RationalsThatNoFormatHolds) {
  const format& fp32 = format_named("fp32");
  const exact_value third = exact_from(cpp_rational(1, 3));
  EXPECT_EQ(round_exact(fp32, third, {}), 0x3EAAAAABu);
  EXPECT_EQ(round_exact(fp32, third, toward_zero), 0x3EAAAAAAu);
  EXPECT_EQ(round_exact(fp32, exact_from(cpp_rational(-1, 3)), upward), 0xBEAAAAAAu);
  EXPECT_EQ(round_exact(format_named("fp64"), third, {}), std::bit_cast<std::uint64_t>(1.0 / 3));
  EXPECT_EQ(round_exact(format_named("e8m0"), third, {}), 0x7Du);  // 1/3 is nearer to 1/4
  EXPECT_EQ(round_exact(fp32, exact_from(cpp_rational(7, 1)), {}), 0x40E00000u);
  EXPECT_EQ(round_exact(fp32, exact_from(0, true), {}), 0x80000000u);
}

/// The code of float(x) in the rounding direction that the hardware is set to for the moment.
std::uint32_t hardware_binary32(double x, int direction) {
  volatile double input = x;
  std::fesetround(direction);
  volatile float output = static_cast<float>(input);
  std::fesetround(FE_TONEAREST);
  return std::bit_cast<std::uint32_t>(static_cast<float>(output));
}

TEST(OracleConvert, Binary64To32EqualsHardware) {
  for (const std::uint64_t random : random_codes(20000, 64, 6)) {
    // Exponents of binary32 and a little beyond at both ends: 2^-152 to 2^129.
    const std::uint64_t exponent = 1023 - 152 + (random >> 52) % 282;
    const std::uint64_t code = (random & 0x800FFFFFFFFFFFFF) | (exponent << 52);
    for (const auto& [mode, direction] : testing::machine_modes) {
      ASSERT_EQ(convert(format_named("fp64"), format_named("fp32"), code, {mode}),
                hardware_binary32(std::bit_cast<double>(code), direction))
          << std::hex << code << ' ' << name(mode);
    }
  }
}

TEST(OracleConvert, Refusals) {
  const cast_rule stochastic{rounding::stochastic};
  EXPECT_THROW(cast("e4m3", 1, stochastic, {0, 0}), std::invalid_argument);
  EXPECT_THROW(cast("e4m3", 1, stochastic, {0, 33}), std::invalid_argument);
  EXPECT_THROW(cast("e4m3", 1, stochastic, {256, 8}), std::invalid_argument);
  EXPECT_NO_THROW(cast("e4m3", 1, stochastic, {255, 8}));
  EXPECT_NO_THROW(cast("e4m3", 1, {}, {256, 8}));  // read by stochastic alone
  EXPECT_THROW(cast("e4m3", 1, {static_cast<rounding>(7)}), std::invalid_argument);
  EXPECT_THROW(cast("e4m3", 1, {rounding::upward, static_cast<overflow>(3)}),
               std::invalid_argument);
  EXPECT_THROW(cast("e4m3", 1, {rounding::upward, overflow::ieee, static_cast<nan_policy>(2)}),
               std::invalid_argument);
}

}  // namespace
}  // namespace samebits::oracle
