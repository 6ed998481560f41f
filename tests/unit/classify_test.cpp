// classify, negate and neighbours, over all codes of the small formats.
#include "numerics/bits/classify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "samebits/scalar.hpp"

namespace samebits {
namespace {

using enum format_id;

// Contract §5: max -> Inf, else NaN, else max; ±0 -> +min subnormal; -min subnormal -> -0.
static_assert(next_up(e5m2, 0x7B) == 0x7C && next_up(e4m3, 0x7E) == 0x7F);
static_assert(next_up(e2m1, 0x07) == 0x07 && next_up(e4m3fnuz, 0x7F) == 0x80);
static_assert(next_up(e4m3, 0x80) == 0x01 && next_up(e4m3, 0x81) == 0x80);
static_assert(next_up(e4m3fnuz, 0x81) == 0x00 && next_up(e4m3fnuz, 0x00) == 0x01);
static_assert(next_up(e5m2, 0xFC) == 0xFB && next_down(e5m2, 0x7C) == 0x7B);
static_assert(next_down(e4m3, 0x00) == 0x81 && next_down(e4m3, 0xFE) == 0x7F);
static_assert(next_down(e2m1, 0x0F) == 0x0F && next_down(e8m0, 0x00) == 0x00);
static_assert(next_up(e8m0, 0x00) == 0x01 && next_up(e8m0, 0xFE) == 0xFF);
static_assert(next_up(tf32, 0x3F800000) == 0x3F802000 && next_down(tf32, 0) == 0x80002000);
static_assert(next_up(fp16, 0xFE01) == 0x7FFF, "a NaN gives the canonical one");

template <class Function>
void for_all_codes(const Function& f) {
  for (int i = 0; i < format_count; ++i) {
    const format_id id = format_at(i);
    if (spec_of(id).storage_bits > 16) continue;
    for (std::uint64_t code = 0; code <= numerics::code_mask(spec_of(id)); ++code) f(id, code);
  }
}

TEST(Classify, AgreesWithTheValue) {
  for_all_codes([](format_id f, std::uint64_t code) {
    const double x = decode_double(f, code);
    const double tiny = decode_double(f, min_normal(f));
    const number_class expected = std::isnan(x)         ? number_class::nan
                                  : std::isinf(x)       ? number_class::infinite
                                  : x == 0              ? number_class::zero
                                  : std::fabs(x) < tiny ? number_class::subnormal
                                                        : number_class::normal;
    ASSERT_EQ(classify(f, code), expected) << name(f) << " " << code;
    ASSERT_EQ(is_nan(f, code), std::isnan(x));
    ASSERT_EQ(is_finite(f, code), std::isfinite(x));
    // A NaN's sign is read from its code: the value decoded from it is canonical.
    const format_spec s = spec_of(f);
    const bool sign_bit = (code & numerics::sign_mask(s)) != 0;
    const bool negative = std::isnan(x) ? numerics::has_signed_nan(s) && sign_bit : std::signbit(x);
    ASSERT_EQ(is_negative(f, code), negative) << name(f) << " " << code;
  });
}

}  // namespace
}  // namespace samebits
