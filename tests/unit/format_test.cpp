// The library's format rows against the oracle's table, field by field.
#include "samebits/core/format.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "oracle/format_table.hpp"
#include "samebits/scalar.hpp"

namespace samebits {
namespace {

TEST(Format, TablesHoldTheSameFormats) {
  EXPECT_EQ(oracle::format_table.size(), static_cast<std::size_t>(format_count));
  for (const oracle::format& expected : oracle::format_table) {
    EXPECT_TRUE(find_format(expected.name).has_value()) << expected.name;
  }
}

TEST(Format, RowsAgreeFieldByField) {
  for (int i = 0; i < format_count; ++i) {
    const format_id id = format_at(i);
    SCOPED_TRACE(name(id));
    const format_spec row = spec_of(id);
    const oracle::format& expected = oracle::format_named(name(id));
    EXPECT_EQ(numerics::has_sign(row) ? 1 : 0, expected.sign_bits);
    EXPECT_EQ(row.exponent_bits, expected.exponent_bits);
    EXPECT_EQ(row.mantissa_bits, expected.mantissa_bits);
    EXPECT_EQ(row.bias, expected.bias);
    EXPECT_EQ(row.storage_bits, expected.storage_bits);
    EXPECT_EQ(storage_bytes(id) * 8, expected.storage_bits);
    EXPECT_EQ(numerics::significant_bits(row) + row.padding_bits, expected.code_bits);
    EXPECT_EQ(row.padding_bits, expected.unused_low_bits);
    EXPECT_EQ(max_finite(id), expected.max_finite);
    EXPECT_EQ(min_normal(id), expected.min_normal);
    EXPECT_EQ(min_positive(id), expected.min_subnormal);
    EXPECT_EQ(decode_double(id, min_normal(id)), std::ldexp(1.0, expected.min_normal_exponent));
    EXPECT_EQ(decode_double(id, min_positive(id)),
              std::ldexp(1.0, expected.min_subnormal_exponent));
    EXPECT_EQ(numerics::has_negative_zero(row), expected.zero == oracle::zeros::both);
    EXPECT_EQ(numerics::has_inf(row), expected.infinity.has_value());
    if (expected.infinity) {
      EXPECT_EQ(numerics::inf_code(row) << row.padding_bits, *expected.infinity);
    }
    EXPECT_EQ(numerics::has_nan(row), expected.canonical_nan.has_value());
    EXPECT_EQ(canonical_nan(id), expected.canonical_nan.value_or(expected.max_finite));
  }
}

TEST(Format, NamesAreFoundAndNothingElse) {
  for (int i = 0; i < format_count; ++i) {
    EXPECT_EQ(find_format(name(format_at(i))), format_at(i));
  }
  for (const char* wrong : {"", "fp", "e4m3 ", "float8", "int8", "torch", "torch.", "os.float32",
                            "torch.torch.half", ".half"}) {
    EXPECT_FALSE(find_format(wrong).has_value()) << wrong;
  }
}

TEST(Format, NamesOfOtherLibrariesAreFoundInAnyCase) {
  const std::pair<format_id, std::vector<const char*>> aliases[] = {
      {format_id::e4m3, {"E4M3", "e4m3fn", "float8_e4m3fn", "torch.float8_e4m3fn", "F8_E4M3"}},
      {format_id::fp16, {"Fp16", "float16", "half"}},
      {format_id::bf16, {"bfloat16", "BF16"}},
      {format_id::e5m2fnuz, {"ml_dtypes.float8_e5m2fnuz"}},
      {format_id::fp32, {"float"}},
      {format_id::fp64, {"np.float64"}},
      {format_id::e3m2, {"float6_e3m2fn"}},
      {format_id::e2m3, {"F6_E2M3"}},
      {format_id::e2m1, {"float4_e2m1fn", "F4"}},
      {format_id::e8m0, {"float8_e8m0fnu"}}};
  for (const auto& [format, names] : aliases) {
    for (const char* text : names) EXPECT_EQ(find_format(text), format) << text;
  }
  // ml_dtypes' float8_e4m3 has infinities: it is none of the formats here.
  EXPECT_FALSE(find_format("float8_e4m3").has_value());
}

static_assert(std::is_same_v<storage_t<format_id::e2m1>, std::uint8_t>);
static_assert(std::is_same_v<storage_t<format_id::bf16>, std::uint16_t>);
static_assert(std::is_same_v<storage_t<format_id::tf32>, std::uint32_t>);
static_assert(std::is_same_v<storage_t<format_id::fp64>, std::uint64_t>);

}  // namespace
}  // namespace samebits
