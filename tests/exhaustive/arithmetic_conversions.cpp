// Everything of one operand but sqrt and rint, and comparisons: integers, exponents, neighbours and
// orders on all codes of 8 and 16 bits and random ones of 32, against the exact oracle.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "samebits/arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/effort.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

template <class T>
constexpr format_id format = format_of<T>::value;

template <class T>
T value_of(std::uint64_t code) {
  if constexpr (std::is_same_v<T, float>) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(code));
  } else {
    return T::from_bits(static_cast<typename T::storage>(code));
  }
}

template <class T>
std::uint64_t code_of(T v) {
  if constexpr (std::is_same_v<T, float>) {
    return __builtin_bit_cast(std::uint32_t, v);
  } else {
    return v.bits();
  }
}

/// All codes of 8 and 16 bits; of binary32 random ones, among them many beside integers' ranges.
template <class T>
std::vector<std::uint64_t> codes() {
  std::vector<std::uint64_t> all;
  if (sizeof(T) < 4) {
    const std::uint64_t end = std::uint64_t{1} << (8 * sizeof(T));
    for (std::uint64_t code = 0; code < end; code += effort_divisor) all.push_back(code);
    return all;
  }
  std::mt19937_64 engine(3);
  const word_source next = [&] { return engine(); };
  for (std::uint64_t i = 0; i < 30000 / effort_divisor; ++i) {
    const auto family = static_cast<code_family>(next() % code_family_count);
    std::uint64_t code = draw_code(family, format_id::fp32, format_id::fp32, next);
    if (i % 2 == 0) {  // 2^-3 to 2^66, a few ulps beside a power of two
      code = (code & 0x80000000u) + ((next() % 70 + 124) << 23) + next() % 5 - 2;
    } else if (i % 4 == 1) {  // a half, a quarter
      code = (code & 0xFFFF0000u & ~(0x40000000u)) | 0x3E000000u;
    }
    all.push_back(code);
  }
  return all;
}

std::vector<rounding> modes() {
  std::vector<rounding> all(deterministic_modes.begin(), deterministic_modes.end());
  all.push_back(rounding::stochastic);
  return all;
}

template <class T>
class Arithmetic : public ::testing::Test {};
using Values = ::testing::Types<e4m3, e5m2, fp16, bf16, float>;
TYPED_TEST_SUITE(Arithmetic, Values);

template <class Integer, class T>
void expect_integers() {
  std::mt19937_64 engine(5);
  for (const std::uint64_t code : codes<T>()) {
    const oracle::operand x{&oracle_of(format<T>), code};
    for (const rounding mode : modes()) {
      const random_bits bits = draw_random([&] { return engine(); });
      const auto got = to_integer<Integer>(value_of<T>(code), mode, bits);
      const auto expected =
          oracle::to_integer(x, sizeof(Integer) * 8, std::is_signed_v<Integer>, mode, bits);
      ASSERT_EQ(oracle::cpp_int(got.value), expected.value) << code << ' ' << name(mode);
      ASSERT_EQ(static_cast<unsigned>(got.raised), expected.flags) << code << ' ' << name(mode);
    }
  }
}

TYPED_TEST(Arithmetic, ToIntegers) {
  expect_integers<std::int32_t, TypeParam>();
  expect_integers<std::uint32_t, TypeParam>();
  expect_integers<std::int64_t, TypeParam>();
  expect_integers<std::uint64_t, TypeParam>();
}

template <class To, class Integer>
void expect_from_integers() {
  std::mt19937_64 engine(6);
  for (int i = 0; i < 20000 / static_cast<int>(effort_divisor); ++i) {
    // Of every length, with few ones or few zeros, and beside powers of two.
    auto n = static_cast<Integer>(engine());
    n = static_cast<Integer>(n >> (engine() % (8 * sizeof(Integer))));
    const auto few = static_cast<Integer>(i % 5);
    if (i % 3 == 0) n = (Integer{1} << (engine() % 31)) + few - Integer{2};
    if (i % 7 == 0) n = std::numeric_limits<Integer>::max() - few;
    if (i % 11 == 0) n = std::numeric_limits<Integer>::min() + few;
    for (const rounding mode : modes()) {
      const cast_rule rule{mode, overflow_policies[engine() % 3], nan_policies[engine() % 2]};
      const random_bits bits = draw_random([&] { return engine(); });
      const auto got = from_integer<To>(n, rule, bits);
      const auto expected =
          oracle::from_integer(oracle::cpp_int(n), oracle_of(format<To>), rule, bits);
      ASSERT_EQ(code_of(got.value), expected.code) << n << ' ' << text_of(rule);
      ASSERT_EQ(static_cast<unsigned>(got.raised), expected.flags) << n << ' ' << text_of(rule);
    }
  }
}

TYPED_TEST(Arithmetic, FromIntegers) {
  expect_from_integers<TypeParam, std::int32_t>();
  expect_from_integers<TypeParam, std::uint32_t>();
  expect_from_integers<TypeParam, std::int64_t>();
  expect_from_integers<TypeParam, std::uint64_t>();
}

template <class To, class T>
void expect_scaled(const std::vector<std::uint64_t>& all) {
  std::mt19937_64 engine(7);
  for (const std::uint64_t code : all) {
    auto n = static_cast<std::int32_t>(engine() % 80) - 40;
    if (engine() % 4 == 0) n *= 8;
    if (engine() % 16 == 0) n = static_cast<std::int32_t>(engine());
    const rounding mode = modes()[engine() % 7];
    const cast_rule rule{mode, overflow_policies[engine() % 3], nan_policies[engine() % 2]};
    const random_bits bits = draw_random([&] { return engine(); });
    const auto got = scale_b<To>(value_of<T>(code), n, rule, bits);
    const auto expected =
        oracle::scale_b({&oracle_of(format<T>), code}, n, oracle_of(format<To>), rule, bits);
    ASSERT_EQ(code_of(got.value), expected.code) << code << " n " << n << ' ' << text_of(rule);
    ASSERT_EQ(static_cast<unsigned>(got.raised), expected.flags)
        << code << " n " << n << ' ' << text_of(rule);
  }
}

TYPED_TEST(Arithmetic, Exponents) {
  const auto all = codes<TypeParam>();
  for (int i = 0; i < (sizeof(TypeParam) == 1 ? 256 : 1); ++i) {
    expect_scaled<TypeParam, TypeParam>(all);
  }
  expect_scaled<fp16, TypeParam>(all);
  expect_scaled<e4m3, TypeParam>(all);
  for (const std::uint64_t code : all) {
    const auto got = log_b(value_of<TypeParam>(code));
    const auto expected = oracle::log_b({&oracle_of(format<TypeParam>), code});
    ASSERT_EQ(got.value, expected.value) << code;
    ASSERT_EQ(static_cast<unsigned>(got.raised), expected.flags) << code;
  }
}

template <class A, class B>
void expect_ordered(std::uint64_t a, std::uint64_t b) {
  const auto got = compare(value_of<A>(a), value_of<B>(b));
  const auto expected =
      oracle::compare_values({&oracle_of(format<A>), a}, {&oracle_of(format<B>), b});
  ASSERT_EQ(got.less, expected.order == oracle::relation::less) << a << ' ' << b;
  ASSERT_EQ(got.equal, expected.order == oracle::relation::equal) << a << ' ' << b;
  ASSERT_EQ(got.greater, expected.order == oracle::relation::greater) << a << ' ' << b;
  ASSERT_EQ(got.unordered(), expected.order == oracle::relation::unordered) << a << ' ' << b;
  ASSERT_EQ(static_cast<unsigned>(got.raised), expected.flags) << a << ' ' << b;
}

TYPED_TEST(Arithmetic, Orders) {
  std::mt19937_64 engine(8);
  const word_source next = [&] { return engine(); };
  const auto any = [&](format_id f) {
    return draw_code(static_cast<code_family>(next() % code_family_count), f, format<TypeParam>,
                     next);
  };
  const bool whole = sizeof(TypeParam) == 1;
  const std::uint64_t pairs = 65536 / effort_divisor;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint64_t a = whole ? i >> 8 : any(format<TypeParam>);
    std::uint64_t b = whole ? i & 255 : any(format<TypeParam>);
    if (!whole && i % 4 == 0) b = (a + i % 3) & (~std::uint64_t{0} >> (64 - 8 * sizeof(TypeParam)));
    expect_ordered<TypeParam, TypeParam>(a, b);
    expect_ordered<TypeParam, fp16>(a, any(format_id::fp16));
    expect_ordered<TypeParam, bf16>(a, any(format_id::bf16));
    expect_ordered<e4m3, TypeParam>(any(format_id::e4m3), b);
    ASSERT_EQ(total_order(value_of<TypeParam>(a), value_of<TypeParam>(b)),
              oracle::total_order(oracle_of(format<TypeParam>), a, b))
        << a << ' ' << b;
    if (this->HasFatalFailure()) return;
  }
}

/// nextUp is the least value above, by the oracle's order; NaNs are quieted.
TYPED_TEST(Arithmetic, Neighbours) {
  const oracle::format& oracle_format = oracle_of(format<TypeParam>);
  const std::uint64_t sign = std::uint64_t{1} << (oracle_format.code_bits - 1);
  for (const std::uint64_t code : codes<TypeParam>()) {
    const auto up = next_up(value_of<TypeParam>(code));
    const auto down = next_down(value_of<TypeParam>(code));
    const bool nan = oracle::decode(oracle_format, code).kind == oracle::value_kind::nan;
    const auto flags = oracle::is_signaling(oracle_format, code) ? flags::invalid : flags::none;
    ASSERT_EQ(up.raised, flags) << code;
    ASSERT_EQ(down.raised, flags) << code;
    if (nan) {
      ASSERT_EQ(code_of(up.value), *oracle_format.canonical_nan) << code;
      continue;
    }
    // Mirrored: nextDown(x) = -nextUp(-x), but for the sign of a NaN.
    const auto mirrored = code_of(next_up(value_of<TypeParam>(code ^ sign)).value);
    const bool to_nan = oracle::decode(oracle_format, mirrored).kind == oracle::value_kind::nan;
    ASSERT_EQ(code_of(down.value), to_nan ? mirrored : mirrored ^ sign) << code;
    const std::uint64_t above = code_of(up.value);
    if (oracle::decode(oracle_format, above).kind == oracle::value_kind::nan) {
      ASSERT_EQ(code, oracle_format.max_finite);  // e4m3: beyond max lies NaN
      continue;
    }
    if (code == sign || code == 0) {
      ASSERT_EQ(above, oracle_format.min_subnormal);
    } else if (oracle_format.infinity && code == *oracle_format.infinity) {
      ASSERT_EQ(above, code);
    } else {
      ASSERT_EQ(above, code < sign ? code + 1 : code - 1);
    }
  }
}

}  // namespace
}  // namespace samebits
