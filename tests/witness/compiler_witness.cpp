// The compiler's own binary16 as a witness: conversions to and from _Float16 by hardware or by its
// run-time library, neither of which anybody here wrote.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>

#include "oracle/thresholds.hpp"
#include "samebits/scalar.hpp"
#include "support/conversion_case.hpp"
#include "support/effort.hpp"
#include "support/generators.hpp"
#include "support/rules.hpp"
#include "support/sweep.hpp"

namespace samebits {
namespace {

using namespace support;
using enum format_id;

/// Compilers keep a NaN's sign and payload; which bits is theirs to choose, that it is NaN is not.
void expect_agrees(const conversion_case& c, std::uint64_t theirs) {
  const std::uint64_t ours = convert_code(c.from, c.to, c.input, c.rule).code;
  if (is_nan(c.from, c.input)) {
    ASSERT_TRUE(is_nan(c.to, theirs)) << code_text(c.from, c.input);
    ASSERT_EQ(ours, canonical_nan(c.to)) << code_text(c.from, c.input);
    return;
  }
  ASSERT_TRUE(same_code(c, ours, theirs));
}

TEST(CompilerWitness, Fp32ToFp16) {
  const auto check = [](std::uint32_t code) {
    const auto half = static_cast<_Float16>(std::bit_cast<float>(code));
    conversion_case c{fp32, fp16, code};
    c.where = "convert_code; expected is the compiler's";
    expect_agrees(c, std::bit_cast<std::uint16_t>(half));
  };
  const oracle::step_function f = oracle::make_step_function(oracle_of(fp32), oracle_of(fp16), {});
  for (const std::uint32_t code : code_steps(f).codes_around(2)) {
    check(code);
    if (HasFatalFailure()) return;
  }
  for (std::uint64_t code = 0; code < std::uint64_t{1} << 32; code += 211 * effort_divisor) {
    check(static_cast<std::uint32_t>(code));
    if (HasFatalFailure()) return;
  }
}

template <class Narrow, class Code>
void narrow_fp64(format_id to, unsigned seed) {
  std::mt19937_64 engine(seed);
  const word_source next = [&engine] { return engine(); };
  for (int i = 0; i < 300000; ++i) {
    const auto family = static_cast<code_family>(i % code_family_count);
    const std::uint64_t code = draw_code(family, fp64, to, next);
    const auto narrow = static_cast<Narrow>(std::bit_cast<double>(code));
    conversion_case c{fp64, to, code};
    c.where = "convert_code; expected is the compiler's";
    expect_agrees(c, std::bit_cast<Code>(narrow));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(CompilerWitness, Fp64ToFp16) { narrow_fp64<_Float16, std::uint16_t>(fp16, 16); }

TEST(CompilerWitness, Fp64ToFp32) { narrow_fp64<float, std::uint32_t>(fp32, 32); }

TEST(CompilerWitness, Fp16AndFp32Widen) {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const auto half = std::bit_cast<_Float16>(static_cast<std::uint16_t>(code));
    expect_agrees({fp16, fp32, code}, std::bit_cast<std::uint32_t>(static_cast<float>(half)));
    expect_agrees({fp16, fp64, code}, std::bit_cast<std::uint64_t>(static_cast<double>(half)));
    if (HasFatalFailure()) return;
  }
  for (std::uint64_t code = 0; code < std::uint64_t{1} << 32; code += 4099 * effort_divisor) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(code));
    expect_agrees({fp32, fp64, code}, std::bit_cast<std::uint64_t>(static_cast<double>(x)));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace samebits
