// Functions of arrays through the C interface: the bytes of the C++ functions, for every option.
#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

TEST(CArrays, ConvertEveryFormat) {
  for (int from = 0; from < format_count; ++from) {
    matrix in = random_matrix(format_at(from), 9, 65);
    for (int to = 0; to < format_count; ++to) {
      matrix expected(format_at(to), 9, 65), got(format_at(to), 9, 65);
      convert(in.cpp(), expected.cpp());
      const samebits_array x = in.c(), y = got.c();
      ASSERT_OK(samebits_convert(&x, &y, nullptr, nullptr));
      ASSERT_EQ(got.bytes, expected.bytes) << name(format_at(from)) << name(format_at(to));
    }
  }
}

TEST(CArrays, ConvertWithOptions) {
  matrix in = random_matrix(format_id::fp32, 9, 65);
  const auto expect_same = [&](const char* text, const convert_options& options) {
    matrix expected(format_id::e5m2, 9, 65), got(format_id::e5m2, 9, 65);
    convert(in.cpp(), expected.cpp(), options);
    const samebits_array x = in.c(), y = got.c();
    const samebits_executor where = {"reference", 2, nullptr};
    ASSERT_OK(samebits_convert(&x, &y, text, &where)) << text;
    EXPECT_EQ(got.bytes, expected.bytes) << text;
  };
  expect_same("", {});
  expect_same(" overflow=saturate  nan=preserve_sign ",
              {.overflow = overflow::saturate, .nan = nan_policy::preserve_sign});
  for (const enum_row<rounding>& row : table_of<rounding>) {
    expect_same(("rounding=" + std::string(row.name)).c_str(), {.rounding = row.value});
  }
  expect_same(
      "rounding=stochastic seed=18446744073709551615 random_stream=3 offset=40 pitch=100 "
      "random_bits=5",
      {.rounding = rounding::stochastic,
       .random = {.seed = ~std::uint64_t{0}, .stream = 3, .offset = 40, .pitch = 100, .bits = 5}});
}

TEST(CArrays, AnArrayWithStridesAndAnotherLibrarysName) {
  matrix in = random_matrix(format_id::bf16, 8, 6), out(format_id::fp32, 6, 8);
  samebits_array x = array(transposed(in.cpp()));
  x.format = "torch.bfloat16";
  const samebits_array y = out.c();
  EXPECT_OK(samebits_convert(&x, &y, nullptr, nullptr));
  matrix expected(format_id::fp32, 6, 8);
  convert(transposed(in.cpp()), expected.cpp());
  EXPECT_EQ(out.bytes, expected.bytes);
}

/// Expects codes, scales and dequantized numbers of a text to be those of C++.
template <class Rules>
void expect_quantized(const char* text, const Rules& rules, format_id scale_format,
                      format_id code_format = format_id::e4m3) {
  matrix in = random_matrix(format_id::bf16, 70, 300);
  const matrix_shape shape = scales_shape(70, 300, rules.tile);
  std::int64_t rows = 0, cols = 0;
  ASSERT_OK(samebits_scales_shape(70, 300, text, &rows, &cols)) << text;
  EXPECT_EQ((matrix_shape{rows, cols}), shape) << text;
  matrix codes(code_format, 70, 300), expected_codes = codes;
  matrix scales(scale_format, shape.rows, shape.cols), expected_scales = scales;
  matrix numbers(format_id::fp32, 70, 300), expected_numbers = numbers;
  quantize(in.cpp(), {.codes = expected_codes.cpp(), .scales = expected_scales.cpp()}, rules);
  dequantize(expected_codes.cpp(), expected_scales.cpp(), expected_numbers.cpp(), rules.tile);
  const samebits_array x = in.c(), q = codes.c(), s = scales.c(), y = numbers.c();
  ASSERT_OK(samebits_quantize(&x, &q, &s, text, nullptr)) << text;
  ASSERT_OK(samebits_dequantize(&q, &s, &y, text, nullptr)) << text;
  EXPECT_EQ(codes.bytes, expected_codes.bytes) << text;
  EXPECT_EQ(scales.bytes, expected_scales.bytes) << text;
  EXPECT_EQ(numbers.bytes, expected_numbers.bytes) << text;
}

TEST(CArrays, QuantizeByEveryRecipe) {
  for (const recipe_preset& p : recipe_presets) {
    if (p.rules.source == scale_source::delayed) continue;
    expect_quantized(("recipe=" + std::string(p.name)).c_str(), p.rules, p.rules.scale_format,
                     p.rules.code_format);
  }
}

TEST(CArrays, QuantizeWithOptions) {
  expect_quantized(nullptr, quantize_options{}, format_id::fp32);
  expect_quantized("scale=mx_rceil tile=1x32",
                   quantize_options{.tile = {1, 32}, .scale = scale_rule::mx_rceil},
                   format_id::e8m0);
  expect_quantized("tile=0x1 scale=div eps=1e-4 upper_bound=0x1p10 nonfinite=skip_nan",
                   quantize_options{.tile = {0, 1},
                                    .scale = scale_rule::div,
                                    .eps = 1e-4f,
                                    .upper_bound = 1024,
                                    .nonfinite = nonfinite::skip_nan},
                   format_id::fp32);
  expect_quantized(
      "scale_overflow=input_max overflow=ieee nan=preserve_sign rounding=stochastic seed=7",
      quantize_options{.rounding = rounding::stochastic,
                       .overflow = overflow::ieee,
                       .nan = nan_policy::preserve_sign,
                       .random = {.seed = 7},
                       .scale_overflow = scale_overflow::input_max},
      format_id::fp32);
}

/// Multiplies e4m3 matrices with tiles of 128, and optionally C, in C and in C++.
void expect_product(const char* text, const accumulator& sum, matmul_options options, bool scaled,
                    bool with_c) {
  matrix a = number_matrix(format_id::e4m3, 5, 256), b = number_matrix(format_id::e4m3, 256, 7, 2);
  matrix a_scales = number_matrix(format_id::fp32, 5, 2),
         b_scales = number_matrix(format_id::fp32, 2, 1);
  matrix c = number_matrix(format_id::fp32, 5, 7, 3);
  matrix got(format_id::fp32, 5, 7), expected = got;
  if (scaled) options.a_scales = {a_scales.cpp(), {1, 128}};
  if (scaled) options.b_scales = {b_scales.cpp(), {128, 128}};
  if (with_c) options.c = c.cpp();
  matmul(a.cpp(), b.cpp(), expected.cpp(), sum, options);
  const samebits_array x = a.c(), y = b.c(), xs = a_scales.c(), ys = b_scales.c(), z = c.c(),
                       d = got.c();
  ASSERT_OK(samebits_matmul(&x, scaled ? &xs : nullptr, &y, scaled ? &ys : nullptr,
                            with_c ? &z : nullptr, &d, text, nullptr))
      << text;
  EXPECT_EQ(got.bytes, expected.bytes) << text;
}

TEST(CArrays, Matmul) {
  expect_product("sum=exact", accumulator::exact(), {}, false, true);
  expect_product("sum=ieee_fp32 order=tree c_enters=first",
                 accumulator::ieee_fp32(fp32_order::tree), {.c_enters = addend::first}, false,
                 true);
  expect_product("sum=fp32_per_128 a_tile=1x128 b_tile=128x128 scale_order=product",
                 accumulator::fp32_per_128(), {.scale_order = scale_order::product}, true, false);
  expect_product("sum=tensor_core unit=hopper-wgmma promotion=128 a_tile=1x128 b_tile=128x128",
                 accumulator::tensor_core(tensor_unit::hopper_wgmma, 128), {}, true, true);
  expect_product("sum=tensor_core unit=ada-mma unit_result=fp16 products=32",
                 accumulator::tensor_core(tensor_unit::ada_mma, 0, format_id::fp16, 32), {}, false,
                 false);
}

TEST(CArrays, EvaluateFunctionsAndGradients) {
  matrix in = random_matrix(format_id::fp32, 9, 65),
         grad = random_matrix(format_id::fp32, 9, 65, 2);
  const auto expect_same = [&](const char* f, const char* text, function id, bool gradient,
                               format_id to, const evaluate_options& options) {
    matrix got(to, 9, 65), expected = got;
    if (gradient) {
      evaluate_gradient(id, grad.cpp(), in.cpp(), expected.cpp(), options);
    } else {
      evaluate(id, in.cpp(), expected.cpp(), options);
    }
    const samebits_array x = in.c(), g = grad.c(), y = got.c();
    ASSERT_OK(samebits_evaluate(f, gradient ? &g : nullptr, &x, &y, text, nullptr)) << text;
    EXPECT_EQ(got.bytes, expected.bytes) << f;
  };
  expect_same("gelu_tanh", nullptr, function::gelu_tanh, false, format_id::fp32, {});
  expect_same("silu", "", function::silu, true, format_id::bf16, {});
  expect_same("elu", "rule=torch_2_11 parameter=0.3", function::elu, true, format_id::fp32,
              {.rule = function_rule::torch_2_11, .parameter = 0.3});
  expect_same("exp", "rounding=stochastic overflow=saturate seed=5 random_stream=2 random_bits=9",
              function::exp, false, format_id::e4m3,
              {.rounding = rounding::stochastic,
               .overflow = overflow::saturate,
               .random = {.seed = 5, .stream = 2, .bits = 9}});
  expect_same("exp", "rounding=stochastic", function::exp, false, format_id::fp16,
              {.rounding = rounding::stochastic});
}

}  // namespace
}  // namespace samebits::in_c
