// Functions on single codes, names of enumerators, and autocast in C against C++.
#include <cmath>

#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

TEST(CScalar, FormatInfo) {
  for (int i = 0; i < format_count; ++i) {
    const format_id f = format_at(i);
    const format_spec s = spec_of(f);
    samebits_format_info info = {};
    ASSERT_OK(samebits_get_format_info(i, &info));
    EXPECT_EQ(info.name, name(f));
    EXPECT_EQ(info.exponent_bits, s.exponent_bits);
    EXPECT_EQ(info.mantissa_bits, s.mantissa_bits);
    EXPECT_EQ(info.bias, s.bias);
    EXPECT_EQ(info.storage_bits, s.storage_bits);
    EXPECT_EQ(info.padding_bits, s.padding_bits);
    EXPECT_EQ(info.has_arithmetic != 0, has_arithmetic(f));
    EXPECT_EQ(info.max_finite, max_finite(f));
    EXPECT_EQ(info.min_normal, min_normal(f));
    EXPECT_EQ(info.min_positive, min_positive(f));
    EXPECT_EQ(info.canonical_nan, canonical_nan(f));
    EXPECT_EQ(info.max_value, decode_double(f, max_finite(f)));
    EXPECT_EQ(info.epsilon, std::ldexp(1.0, -s.mantissa_bits));
  }
  samebits_format_info e2m1 = {};
  ASSERT_OK(samebits_get_format_info(SAMEBITS_FORMAT_E2M1, &e2m1));
  EXPECT_EQ(e2m1.bits, 4);
  EXPECT_EQ(e2m1.max_value, 6);
  EXPECT_EQ(e2m1.min_normal_value, 1);
  EXPECT_EQ(e2m1.min_positive_value, 0.5);
}

TEST(CScalar, CodesOfEveryFormat) {
  for (int i = 0; i < format_count; ++i) {
    const format_id f = format_at(i);
    for (std::uint64_t k = 0; k < 300; ++k) {
      const std::uint64_t word = std::uint64_t{random_word(1, 0, k)} << 32 | random_word(2, 0, k);
      const std::uint64_t code = k < 256 ? k : word;
      for (int to = 0; to < format_count; ++to) {
        samebits_cast_rule rule = SAMEBITS_CAST_RULE_INIT;
        rule.rounding = static_cast<int32_t>(k % enum_count<rounding>);
        rule.overflow = static_cast<int32_t>(k % enum_count<overflow>);
        rule.nan_policy = static_cast<int32_t>(k % enum_count<nan_policy>);
        rule.random_value = 77;
        rule.random_bits = 8;
        const converted expected = convert_code(
            f, format_at(to), code,
            {static_cast<rounding>(rule.rounding), static_cast<overflow>(rule.overflow),
             static_cast<nan_policy>(rule.nan_policy)},
            {77, 8});
        samebits_converted got = {};
        ASSERT_OK(samebits_convert_code(i, to, code, &rule, &got));
        ASSERT_EQ(got.code, expected.code);
        ASSERT_EQ(got.inexact != 0, expected.inexact);
        ASSERT_EQ(got.overflow != 0, expected.overflow);
      }
      double value = 0;
      ASSERT_OK(samebits_code_value(i, code, &value));
      EXPECT_TRUE(same_bytes(value, decode_double(f, code)));
      samebits_code_info info = {};
      ASSERT_OK(samebits_get_code_info(i, code, &info));
      EXPECT_EQ(info.number_class, static_cast<int32_t>(classify(f, code)));
      EXPECT_EQ(info.negative != 0, is_negative(f, code));
      EXPECT_EQ(info.next_up, next_up(f, code));
      EXPECT_EQ(info.next_down, next_down(f, code));
    }
  }
}

TEST(CScalar, RandomBits) {
  for (int bits = 1; bits <= 32; ++bits) {
    std::uint32_t value = 0;
    ASSERT_OK(samebits_random_word(3, 4, 5, bits, &value));
    EXPECT_EQ(value, random_word(3, 4, 5, bits));
  }
  std::uint32_t value = 0;
  EXPECT_REFUSED(samebits_random_word(3, 4, 5, 33, &value), SAMEBITS_INVALID_ARGUMENT, "1..32");
  samebits_cast_rule rule = SAMEBITS_CAST_RULE_INIT;
  samebits_converted got = {};
  rule.random_bits = 0;
  EXPECT_REFUSED(samebits_convert_code(1, 5, 0, &rule, &got), SAMEBITS_INVALID_ARGUMENT,
                 "random_bits");
  rule.random_bits = 4;
  rule.random_value = 16;
  EXPECT_REFUSED(samebits_convert_code(1, 5, 0, &rule, &got), SAMEBITS_INVALID_ARGUMENT,
                 "random_value");
}

TEST(CScalar, Text) {
  for (int i = 0; i < format_count; ++i) {
    for (std::uint64_t code = 0; code < 256; ++code) {
      const std::string expected[] = {to_shortest(format_at(i), code),
                                      to_exact_decimal(format_at(i), code),
                                      to_hex_float(format_at(i), code)};
      for (int style = 0; style < 3; ++style) {
        char text[1200];
        size_t length = 0;
        ASSERT_OK(samebits_format_code(i, code, style, text, sizeof text, &length));
        EXPECT_EQ(text, expected[style]);
        EXPECT_EQ(length, expected[style].size());
      }
      samebits_parsed parsed = {};
      ASSERT_OK(samebits_parse_code(i, expected[0].c_str(), nullptr, &parsed));
      const parse_result p = parse(format_at(i), expected[0]);
      EXPECT_EQ(parsed.ok != 0, p.ok);
      EXPECT_EQ(parsed.code, p.code);
    }
  }
  samebits_parsed parsed = {};
  ASSERT_OK(samebits_parse_code(SAMEBITS_FORMAT_E4M3, "12x", nullptr, &parsed));
  EXPECT_EQ(parsed.ok, 0);
  EXPECT_EQ(parsed.error_offset, 2u);
}

TEST(CScalar, TextNeedsABufferThatIsLargeEnough) {
  char text[8] = "before";
  size_t length = 0;
  EXPECT_OK(samebits_format_code(SAMEBITS_FORMAT_E4M3, 0x7E, 0, nullptr, 0, &length));
  EXPECT_EQ(length, 3u);
  EXPECT_REFUSED(samebits_format_code(SAMEBITS_FORMAT_E4M3, 0x7E, 0, text, 3, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "buffer: needs 4 bytes, got 3");
  EXPECT_STREQ(text, "before");
  EXPECT_OK(samebits_format_code(SAMEBITS_FORMAT_E4M3, 0x7E, 0, text, 4, nullptr));
  EXPECT_STREQ(text, "448");
}

TEST(CScalar, ComputeCodes) {
  for (int op = 0; op < enum_count<operation>; ++op) {
    for (std::uint64_t k = 0; k < 500; ++k) {
      const samebits_operand x[3] = {{random_word(1, 0, k, 16), SAMEBITS_FORMAT_FP16, 0},
                                     {random_word(2, 0, k, 8), SAMEBITS_FORMAT_E4M3, 0},
                                     {random_word(3, 0, k, 32), SAMEBITS_FORMAT_FP32, 0}};
      const arithmetic_result expected = compute(static_cast<operation>(op),
                                                 {{format_id::fp16, x[0].code},
                                                  {format_id::e4m3, x[1].code},
                                                  {format_id::fp32, x[2].code}},
                                                 format_id::bf16);
      samebits_computed got = {};
      ASSERT_OK(samebits_compute_code(op, x, SAMEBITS_FORMAT_BF16, nullptr, &got));
      ASSERT_EQ(got.code, expected.code);
      ASSERT_EQ(got.flags, static_cast<std::uint32_t>(expected.raised));
    }
  }
  const samebits_operand one = {1, SAMEBITS_FORMAT_FP64, 0};
  samebits_computed got = {};
  EXPECT_REFUSED(
      samebits_compute_code(SAMEBITS_OPERATION_RINT, &one, SAMEBITS_FORMAT_FP32, nullptr, &got),
      SAMEBITS_INVALID_ARGUMENT, "got fp64");
}

TEST(CScalar, NamesOfEnumerators) {
  constexpr int last = SAMEBITS_ENUM_ROTARY_ANGLE;
  for (int e = 0; e <= last; ++e) {
    int count = 0;
    for (; samebits_enum_name(e, count) != nullptr; ++count) {
      int32_t value = -1;
      ASSERT_OK(samebits_enum_find(e, samebits_enum_name(e, count), &value));
      EXPECT_EQ(value, count);
    }
    EXPECT_GE(count, 2) << e;
    EXPECT_EQ(samebits_enum_name(e, -1), nullptr);
  }
  EXPECT_EQ(samebits_enum_name(-1, 0), nullptr);
  EXPECT_EQ(samebits_enum_name(last + 1, 0), nullptr);
  EXPECT_STREQ(samebits_enum_name(SAMEBITS_ENUM_ROUNDING, SAMEBITS_ROUNDING_TO_ODD), "to_odd");
  EXPECT_STREQ(samebits_enum_name(SAMEBITS_ENUM_STATUS, SAMEBITS_CALLBACK_FAILED),
               "callback_failed");
  EXPECT_STREQ(samebits_enum_name(SAMEBITS_ENUM_TENSOR_UNIT, SAMEBITS_TENSOR_UNIT_HOPPER_WGMMA),
               "hopper-wgmma");
}

TEST(CScalar, NamesOfOtherLibrariesFindFormats) {
  int32_t value = -1;
  EXPECT_OK(samebits_enum_find(SAMEBITS_ENUM_FORMAT, "torch.float8_e4m3fn", &value));
  EXPECT_EQ(value, SAMEBITS_FORMAT_E4M3);
  EXPECT_REFUSED(samebits_enum_find(SAMEBITS_ENUM_ROUNDING, "nearest", &value),
                 SAMEBITS_INVALID_ARGUMENT, "there are: nearest_even, nearest_away");
  EXPECT_REFUSED(samebits_enum_find(99, "nearest", &value), SAMEBITS_INVALID_ARGUMENT,
                 "samebits_enumeration");
}

TEST(CScalar, Autocast) {
  for (const char* operation : {"matmul", "linear", "softmax", "add", "cat", "gelu",
                                "binary_cross_entropy", "no such operation"}) {
    int32_t rule = -1;
    ASSERT_OK(samebits_autocast_rule_of(operation, &rule));
    EXPECT_EQ(rule, static_cast<int32_t>(autocast_rule_of(operation)));
    ASSERT_OK(samebits_apex_rule_of(operation, &rule));
    EXPECT_EQ(rule, static_cast<int32_t>(apex_rule_of(operation)));
    for (int precision = 0; precision < 3; ++precision) {
      const auto expected =
          formats_of(operation, static_cast<training_precision>(precision), format_id::fp32);
      samebits_operation_formats got = {};
      ASSERT_OK(samebits_operation_formats_of(operation, precision, SAMEBITS_FORMAT_FP32, &got));
      EXPECT_EQ(got.operands, expected ? static_cast<int32_t>(expected->operands) : -1);
      EXPECT_EQ(got.gradients, expected ? static_cast<int32_t>(expected->gradients) : -1);
      EXPECT_EQ(got.result, expected ? static_cast<int32_t>(expected->result) : -1);
    }
  }
}

}  // namespace
}  // namespace samebits::in_c
