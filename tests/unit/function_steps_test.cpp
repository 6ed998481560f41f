// The steps of CUDA's functions on SIMD lanes against their definition, one step at a time. Compiled
// once for AVX2 and once for AVX-512.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#if defined(__AVX512F__)
#include "backends/simd/functions/steps_avx512.hpp"
#else
#include "backends/simd/functions/steps_avx2.hpp"
#endif
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/squarer.hpp"

namespace samebits {
namespace {

namespace ptx = numerics::ptx;
#if defined(__AVX512F__)
using avx512::lanes, avx512::isa;
bool supported() { return __builtin_cpu_supports("avx512f") != 0; }
#else
using avx2::lanes, avx2::isa;
bool supported() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
#endif

constexpr std::uint32_t nan = 0x7FFFFFFFu;

std::uint32_t first_lane(lanes x) { return isa::largest(x); }  // all lanes are equal
/// A result with the canonical NaN for every NaN: lanes may return any NaN code.
std::uint32_t canonical(std::uint32_t x) { return (x & nan) > 0x7F800000u ? nan : x; }

/// Pseudo-random words.
class generator {
 public:
  std::uint32_t operator()() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }

 private:
  std::uint64_t state_ = 1;
};

class FunctionSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!supported()) GTEST_SKIP() << "the processor lacks these instructions";
  }
};

TEST_F(FunctionSteps, FmaDownInItsBinade) {
  generator next;
  int rounded = 0, compared = 0;
  for (int i = 0; i < 400'000; ++i) {
    const std::uint32_t c = 0x4B000000u + next() % 0x00800000u;  // [2^23, 2^24)
    const std::uint32_t a = (next() & 0x80000000u) | (0x3F000000u + next() % 0x01000000u);
    const std::uint32_t b = 0x35000000u + next() % 0x16000000u;  // up to 2^23
    const std::uint32_t expected = ptx::fma_down(a, b, c);
    if (expected < 0x4B000000u || expected >= 0x4B800000u) continue;
    if (ptx::fma(a, b, c) >= 0x4B800000u) continue;
    ASSERT_EQ(first_lane(fma_down(lanes(a), lanes(b), lanes(c))), expected)
        << std::hex << a << " " << b << " " << c;
    rounded += expected != ptx::fma(a, b, c) ? 1 : 0;
    ++compared;
  }
  EXPECT_GT(compared, 200'000);
  EXPECT_GT(rounded, 50'000);
}

TEST_F(FunctionSteps, FmaDownAtTheEndsOfTheBinade) {
  constexpr std::uint32_t lowest = 0x4B000000u, largest = 0x4B7FFFFFu, half = 0x3F000000u;
  constexpr std::uint32_t tiny = 0x00000001u, one = 0x3F800000u;
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (const std::uint32_t factor : {tiny, half, one, 0x3EFFFFFFu, 0x3F000001u, 0x33800000u}) {
      for (const std::uint32_t c : {lowest, lowest + 1, lowest + 2, largest - 1, largest - 2}) {
        const std::uint32_t expected = ptx::fma_down(sign | one, factor, c);
        if (expected < lowest) continue;
        EXPECT_EQ(first_lane(fma_down(lanes(sign | one), lanes(factor), lanes(c))), expected)
            << std::hex << sign << " " << factor << " " << c;
      }
    }
  }
}

TEST_F(FunctionSteps, StepsOfAnyOperands) {
  generator next;
  for (int i = 0; i < 400'000; ++i) {
    const std::uint32_t a = next(), c = next();
    // Every second b is near a in magnitude, so that sums cancel.
    const std::uint32_t b = i % 2 == 0 ? next() : a ^ 0x80000000u ^ (next() >> (next() % 32));
    const auto same = [&](const char* step, lanes got, std::uint32_t expected) {
      ASSERT_EQ(canonical(first_lane(got)), canonical(expected))
          << step << std::hex << " " << a << " " << b << " " << c;
    };
    const lanes x = a, y = b, z = c;
    same("fma", fma(x, y, z), ptx::fma(a, b, c));
    same("mul", mul(x, y), ptx::mul(a, b));
    same("add", add(x, y), ptx::add(a, b));
    same("sub", sub(x, y), ptx::sub(a, b));
    same("div", div(x, y), ptx::div(a, b));
    same("sqrt", sqrt(x), ptx::sqrt(a));
    same("saturate", saturate(x), ptx::saturate(a));
    same("nearest_whole", nearest_whole(x), ptx::nearest_whole(a));
    same("whole_toward_zero", whole_toward_zero(x), ptx::whole_toward_zero(a));
    same("whole_down", whole_down(x), ptx::whole_down(a));
    same("from_int", from_int(x), ptx::from_int(a));
    if ((a & 0x7FFFFFFFu) < 0x4F000000u) same("to_int", to_int(x), ptx::to_int(a));
    EXPECT_EQ(any(lt(x, y)), ptx::lt(a, b));
  }
}

TEST_F(FunctionSteps, AddTowardZero) {
  generator next;
  for (int i = 0; i < 400'000; ++i) {
    // Exponents 2^-30 .. 2^30 keep every step of the sum's error normal.
    const auto number = [&] { return (next() & 0x807FFFFFu) | ((97 + next() % 61) << 23); };
    const std::uint32_t a = number(), b = number();
    ASSERT_EQ(first_lane(add_rz(lanes(a), lanes(b))), ptx::add_rz(a, b))
        << std::hex << a << " " << b;
  }
}

TEST_F(FunctionSteps, LargerNumbers) {
  constexpr std::uint32_t one = 0x3F800000u, inf = 0x7F800000u, minus = 0x80000000u;
  for (const std::uint32_t a : {0u, one, minus | one, inf, minus | inf}) {
    for (const std::uint32_t b : {0u, minus, one, minus | one, inf, minus | inf, nan}) {
      const std::uint32_t expected = ptx::lt(a, b) ? b : a;
      EXPECT_EQ(first_lane(larger(lanes(a), lanes(b))), expected) << std::hex << a << " " << b;
    }
  }
}

/// The words of lanes, in order.
struct words_of {
  std::uint32_t word[lanes::count];
  explicit words_of(lanes x) { isa::store<32>(reinterpret_cast<std::byte*>(word), x); }
};

TEST_F(FunctionSteps, EachLaneReadsItsRow) {
  std::uint32_t rows[lanes::count];
  for (std::uint32_t first = 0; first < 128; ++first) {
    for (std::uint32_t t = 0; t < lanes::count; ++t) rows[t] = (first + 5 * t) % 128;
    const lanes row = isa::load<32>(reinterpret_cast<std::byte*>(rows));
    const auto found = coefficients_of(simd::rcp_columns, row);
    const words_of high(found.high), b(found.b), low_and_d(found.low_and_d);
    for (std::uint32_t t = 0; t < lanes::count; ++t) {
      EXPECT_EQ(high.word[t], static_cast<std::uint32_t>(simd::rcp_columns.high[rows[t]]));
      EXPECT_EQ(b.word[t], static_cast<std::uint32_t>(simd::rcp_columns.b[rows[t]]));
      EXPECT_EQ(low_and_d.word[t],
                static_cast<std::uint32_t>(simd::rcp_columns.low_and_d[rows[t]]));
    }
  }
}

TEST_F(FunctionSteps, ColumnsAndPermutations) {
  std::uint32_t numbers[8 * lanes::count];
  for (std::uint32_t i = 0; i < std::size(numbers); ++i) numbers[i] = i;
  const words_of second(isa::column<1>(numbers, 4)), last(isa::column<3>(numbers + 4, 8));
  const lanes rotated = lanes(isa::load<32>(reinterpret_cast<std::byte*>(numbers))) + lanes(3u);
  const words_of moved(permuted(isa::load<32>(reinterpret_cast<std::byte*>(numbers)), rotated));
  for (std::uint32_t t = 0; t < lanes::count; ++t) {
    EXPECT_EQ(second.word[t], 4 * t + 1);
    EXPECT_EQ(last.word[t], 8 * t + 7);
    EXPECT_EQ(moved.word[t], (t + 3) % lanes::count);
  }
}

TEST_F(FunctionSteps, TruncatedSquareOfEveryOperand) {
  for (std::uint32_t x = 0; x < 1u << 17; ++x) {
    ASSERT_EQ(first_lane(simd::truncated_square(lanes(x))), numerics::hopper::truncated_square(x));
  }
}

TEST_F(FunctionSteps, Ex2AroundItsLimits) {
  const auto same = [](std::uint32_t x) {
    ASSERT_EQ(canonical(first_lane(simd::ex2_approx_ftz(lanes(x)))),
              numerics::hopper::ex2_approx_ftz(x))
        << std::hex << x;
  };
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    // 0, 2^-126, 2^-23, 1, 126, 127, 128, 256, 2^9, 2^31, Inf
    for (const std::uint32_t at :
         {0u, 0x00800000u, 0x34000000u, 0x3F800000u, 0x42FC0000u, 0x42FE0000u, 0x43000000u,
          0x43800000u, 0x44000000u, 0x4F000000u, 0x7F800000u}) {
      for (std::uint32_t i = at < 300 ? 0 : at - 300; i < at + 300; ++i) same(sign | i);
    }
    same(sign | nan);
  }
  for (std::uint32_t x = 0; x < 0xFFFF0000u; x += 0x1357u) same(x);
}

}  // namespace
}  // namespace samebits
