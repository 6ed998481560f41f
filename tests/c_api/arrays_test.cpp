// Conversion, array arithmetic and reductions in C against C++, bit for bit.
#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

constexpr format_id with_arithmetic[] = {format_id::fp32, format_id::fp16, format_id::bf16,
                                         format_id::e4m3, format_id::e5m2};

template <class Options>
void set_rule(Options& o, int round, int on_overflow, int on_nan) {
  o.rounding = round;
  o.overflow = on_overflow;
  o.nan_policy = on_nan;
  o.random.seed = 7;
  o.random.bits = 16;
}

cast_rule rule_of(int round, int on_overflow, int on_nan) {
  return {static_cast<rounding>(round), static_cast<overflow>(on_overflow),
          static_cast<nan_policy>(on_nan)};
}

/// Calls check(rounding, overflow, NaN policy) for every rule.
template <class Check>
void for_each_rule(const Check& check) {
  for (int r = 0; r < enum_count<rounding>; ++r) {
    for (int o = 0; o < enum_count<overflow>; ++o) {
      for (int n = 0; n < enum_count<nan_policy>; ++n) check(r, o, n);
    }
  }
}

TEST(CArrays, ConvertEveryFormatByEveryRule) {
  for (int from = 0; from < format_count; ++from) {
    matrix in = random_matrix(format_at(from), 3, 341);
    for (int to = 0; to < format_count; ++to) {
      matrix expected(format_at(to), 3, 341);
      matrix got(format_at(to), 3, 341);
      for_each_rule([&](int r, int o, int n) {
        const cast_rule rule = rule_of(r, o, n);
        convert(in.cpp(), expected.cpp(),
                {rule.round, rule.on_overflow, rule.on_nan, {.seed = 7, .bits = 16}});
        samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
        set_rule(options, r, o, n);
        const samebits_view x = in.c();
        const samebits_view y = got.c();
        ASSERT_OK(samebits_convert(&x, &y, &options, nullptr));
        ASSERT_EQ(got.bytes, expected.bytes) << name(format_at(from)) << name(format_at(to));
      });
    }
  }
}

TEST(CArrays, EvaluateEveryFunction) {
  for (int f = 0; f < enum_count<function>; ++f) {
    matrix in = random_matrix(format_id::fp32, 3, 341);
    matrix grad = random_matrix(format_id::fp32, 3, 341);
    matrix expected(format_id::fp32, 3, 341), got(format_id::fp32, 3, 341);
    const bool torch = f != static_cast<int>(function::log10) && f < SAMEBITS_FUNCTION_FAST_EXP &&
                       f != static_cast<int>(function::sin) &&
                       f != static_cast<int>(function::cos) &&
                       f != static_cast<int>(function::erfc);
    evaluate_options options{.rule = torch ? function_rule::torch_2_11 : function_rule::cuda_13_0};
    samebits_evaluate_options o = SAMEBITS_EVALUATE_OPTIONS_INIT;
    o.rule = static_cast<int>(options.rule);
    if (has_parameter(static_cast<function>(f))) {
      options.parameter = o.parameter = 0.75;
      o.has_parameter = 1;
    }
    const samebits_view x = in.c(), g = grad.c(), y = got.c();
    evaluate(static_cast<function>(f), in.cpp(), expected.cpp(), options);
    ASSERT_OK(samebits_evaluate(f, &x, &y, &o, nullptr));
    EXPECT_EQ(got.bytes, expected.bytes) << name(static_cast<function>(f));
    if (!torch) continue;
    evaluate_gradient(static_cast<function>(f), grad.cpp(), in.cpp(), expected.cpp(), options);
    ASSERT_OK(samebits_evaluate_gradient(f, &g, &x, &y, &o, nullptr));
    EXPECT_EQ(got.bytes, expected.bytes) << name(static_cast<function>(f));
  }
}

TEST(CArrays, EvaluateIsCorrectlyRoundedByDefault) {
  matrix in = random_matrix(format_id::fp32, 3, 341);
  matrix expected(format_id::bf16, 3, 341), got(format_id::bf16, 3, 341);
  const samebits_view x = in.c(), y = got.c();
  evaluate(function::tanh, in.cpp(), expected.cpp());
  ASSERT_OK(samebits_evaluate(SAMEBITS_FUNCTION_TANH, &x, &y, nullptr, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  samebits_evaluate_options o = SAMEBITS_EVALUATE_OPTIONS_INIT;
  o.rounding = SAMEBITS_ROUNDING_STOCHASTIC;
  o.overflow = SAMEBITS_OVERFLOW_SATURATE;
  o.random.seed = 5;
  evaluate(function::exp, in.cpp(), expected.cpp(),
           {.round = rounding::stochastic,
            .on_overflow = overflow::saturate,
            .random = {.seed = 5, .bits = 16}});
  ASSERT_OK(samebits_evaluate(SAMEBITS_FUNCTION_EXP, &x, &y, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  o.random.bits = 12;
  evaluate(function::exp, in.cpp(), expected.cpp(),
           {.round = rounding::stochastic,
            .on_overflow = overflow::saturate,
            .random = {.seed = 5, .bits = 12}});
  ASSERT_OK(samebits_evaluate(SAMEBITS_FUNCTION_EXP, &x, &y, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
}

TEST(CArrays, RotaryTables) {
  const std::int64_t positions[] = {0, 1, -7, 100'000, INT64_MIN};
  const double frequencies[] = {1, 0.25, -3e10, 1e-5};
  for (const format_id format : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    matrix cos(format, 5, 4), sin = cos, c_cos = cos, c_sin = cos;
    const samebits_view c = c_cos.c(), s = c_sin.c();
    const auto expect_same = [&] {
      EXPECT_EQ(c_cos.bytes, cos.bytes);
      EXPECT_EQ(c_sin.bytes, sin.bytes);
    };
    rotary_table(positions, cos.cpp(), sin.cpp());
    ASSERT_OK(samebits_rotary_table(positions, 5, &c, &s, nullptr, nullptr));
    expect_same();
    samebits_rotary_options o = SAMEBITS_ROTARY_OPTIONS_INIT;
    o.base = 500000;
    o.angle = SAMEBITS_ROTARY_ANGLE_BINARY32;
    rotary_table(positions, cos.cpp(), sin.cpp(), {.base = 5e5, .angle = rotary_angle::binary32});
    ASSERT_OK(samebits_rotary_table(positions, 5, &c, &s, &o, nullptr));
    expect_same();
    o.angle = SAMEBITS_ROTARY_ANGLE_EXACT;
    o.frequencies = frequencies;
    o.frequency_count = 4;
    rotary_table(positions, cos.cpp(), sin.cpp(), {.frequencies = frequencies});
    ASSERT_OK(samebits_rotary_table(positions, 5, &c, &s, &o, nullptr));
    expect_same();
    o.frequency_count = 3;
    EXPECT_REFUSED(samebits_rotary_table(positions, 5, &c, &s, &o, nullptr),
                   SAMEBITS_INVALID_ARGUMENT, "options.frequencies: must be as many as columns");
    o.frequencies = nullptr;
    EXPECT_REFUSED(samebits_rotary_table(positions, 5, &c, &s, &o, nullptr),
                   SAMEBITS_INVALID_ARGUMENT, "options.frequencies: must not be null");
    EXPECT_REFUSED(samebits_rotary_table(nullptr, 5, &c, &s, nullptr, nullptr),
                   SAMEBITS_INVALID_ARGUMENT, "positions: must not be null");
  }
}

TEST(CArrays, SoftmaxAndItsGradients) {
  matrix in = number_matrix(format_id::fp32, 3, 9301);
  matrix grad = number_matrix(format_id::fp32, 3, 9301);
  matrix expected(format_id::fp32, 3, 9301), got(format_id::fp32, 3, 9301);
  const softmax_options options{function_rule::torch_2_11, 3, 8, 2};
  samebits_softmax_options o = SAMEBITS_SOFTMAX_OPTIONS_INIT;
  o.rule = SAMEBITS_FUNCTION_RULE_TORCH_2_11;
  o.offset = 3;
  o.num_warps = 8;
  o.elements_per_thread = 2;
  const samebits_view x = in.c(), g = grad.c(), y = got.c();
  softmax(in.cpp(), expected.cpp(), options);
  ASSERT_OK(samebits_softmax(&x, &y, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  log_softmax(in.cpp(), expected.cpp(), options);
  ASSERT_OK(samebits_log_softmax(&x, &y, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  softmax_gradient(grad.cpp(), in.cpp(), expected.cpp(), options);
  ASSERT_OK(samebits_softmax_gradient(&g, &x, &y, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  log_softmax_gradient(grad.cpp(), in.cpp(), expected.cpp(), options);
  ASSERT_OK(samebits_log_softmax_gradient(&g, &x, &y, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  softmax(in.cpp(), expected.cpp(), {function_rule::triton_3_6, 0, 8, 2});
  o.rule = SAMEBITS_FUNCTION_RULE_TRITON_3_6;
  ASSERT_OK(samebits_softmax(&x, &y, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  EXPECT_EQ(samebits_softmax(&x, &y, nullptr, nullptr), SAMEBITS_UNSUPPORTED);
}

TEST(CArrays, LayerNormAndItsGradient) {
  matrix in = number_matrix(format_id::bf16, 3, 52), grad = number_matrix(format_id::bf16, 3, 52);
  matrix weight = number_matrix(format_id::bf16, 1, 52),
         bias = number_matrix(format_id::bf16, 1, 52);
  matrix expected(format_id::bf16, 3, 52), got(format_id::bf16, 3, 52);
  matrix mean(format_id::fp32, 3, 1), rstd = mean, c_mean = mean, c_rstd = mean;
  const layer_norm_options options{function_rule::torch_2_11, 0.25, 1};
  samebits_layer_norm_options o = SAMEBITS_LAYER_NORM_OPTIONS_INIT;
  o.rule = SAMEBITS_FUNCTION_RULE_TORCH_2_11;
  o.epsilon = 0.25;
  o.offset = 1;
  const samebits_view x = in.c(), g = grad.c(), w = weight.c(), b = bias.c(), y = got.c();
  const samebits_view m = c_mean.c(), r = c_rstd.c();
  layer_norm(in.cpp(), weight.cpp(), bias.cpp(), expected.cpp(), mean.cpp(), rstd.cpp(), options);
  ASSERT_OK(samebits_layer_norm(&x, &w, &b, &y, &m, &r, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  EXPECT_EQ(c_mean.bytes, mean.bytes);
  EXPECT_EQ(c_rstd.bytes, rstd.bytes);
  layer_norm_gradient(grad.cpp(), in.cpp(), mean.cpp(), rstd.cpp(), weight.cpp(), expected.cpp(),
                      options);
  ASSERT_OK(samebits_layer_norm_gradient(&g, &x, &m, &r, &w, &y, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
  layer_norm(in.cpp(), {}, {}, expected.cpp(), {}, {}, options);
  ASSERT_OK(samebits_layer_norm(&x, nullptr, nullptr, &y, nullptr, nullptr, &o, nullptr));
  EXPECT_EQ(got.bytes, expected.bytes);
}

TEST(CArrays, EvaluateRefusesWhatItDoesNotHave) {
  matrix in = random_matrix(format_id::fp32, 1, 5);
  const samebits_view x = in.c();
  const samebits_evaluate_options none = SAMEBITS_EVALUATE_OPTIONS_INIT;
  EXPECT_EQ(samebits_evaluate(SAMEBITS_FUNCTION_SIN, &x, &x, &none, nullptr), SAMEBITS_UNSUPPORTED);
  EXPECT_EQ(samebits_evaluate(SAMEBITS_FUNCTION_SIN, &x, &x, nullptr, nullptr),
            SAMEBITS_UNSUPPORTED);
  EXPECT_EQ(samebits_evaluate(27, &x, &x, &none, nullptr), SAMEBITS_INVALID_ARGUMENT);
  EXPECT_EQ(samebits_evaluate_gradient(0, nullptr, &x, &x, &none, nullptr),
            SAMEBITS_INVALID_ARGUMENT);
}

TEST(CArrays, ConvertAShardWithTheBitsOfTheWhole) {
  matrix in = random_matrix(format_id::fp32, 16, 40);
  matrix whole(format_id::e4m3, 16, 40);
  convert(in.cpp(), whole.cpp(), {.round = rounding::stochastic, .random = {.seed = 3}});
  matrix part(format_id::e4m3, 16, 8);
  samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
  options.rounding = SAMEBITS_ROUNDING_STOCHASTIC;
  options.random.seed = 3;
  options.random.offset = 24;
  options.random.has_pitch = 1;
  options.random.pitch = 40;
  samebits_view x = in.c();
  x.data = static_cast<float*>(x.data) + 24;
  x.cols = 8;
  const samebits_view y = part.c();
  ASSERT_OK(samebits_convert(&x, &y, &options, nullptr));
  for (std::size_t r = 0; r < 16; ++r) {
    EXPECT_EQ(std::memcmp(&part.bytes[r * 8], &whole.bytes[r * 40 + 24], 8), 0);
  }
}

TEST(CArrays, ConvertOnANamedBackendWithThreads) {
  matrix in = random_matrix(format_id::fp32, 100, 100);
  matrix expected(format_id::bf16, 100, 100);
  convert(in.cpp(), expected.cpp());
  matrix got(format_id::bf16, 100, 100);
  samebits_executor where = SAMEBITS_EXECUTOR_INIT;
  where.backend = "reference";
  where.threads = 2;
  const samebits_view x = in.c();
  const samebits_view y = got.c();
  EXPECT_OK(samebits_convert(&x, &y, nullptr, &where));
  EXPECT_EQ(got.bytes, expected.bytes);
}

TEST(CArrays, ComputeEveryOperationInEveryFormat) {
  for (const format_id f : with_arithmetic) {
    matrix a = random_matrix(f, 4, 61, 1);
    matrix b = random_matrix(f, 4, 61, 2);
    matrix c = random_matrix(f, 4, 61, 3);
    for (int op = 0; op < enum_count<operation>; ++op) {
      for (const format_id to : with_arithmetic) {
        for_each_rule([&](int r, int o, int n) {
          const cast_rule rule = rule_of(r, o, n);
          matrix expected(to, 4, 61);
          std::vector<flags> expected_each(4 * 61);
          const flags raised = compute_with_flags(
              static_cast<operation>(op), {a.cpp(), b.cpp(), c.cpp()}, expected.cpp(),
              {rule.round, rule.on_overflow, rule.on_nan, {.seed = 7, .bits = 16}},
              {expected_each.data(), 61, 1});
          samebits_compute_options options = SAMEBITS_COMPUTE_OPTIONS_INIT;
          set_rule(options, r, o, n);
          matrix got(to, 4, 61);
          std::vector<std::uint8_t> got_each(4 * 61);
          const samebits_flags_view each = {got_each.data(), 61, 1};
          std::uint32_t flags_in_c = 0;
          const samebits_view x = a.c(), y = b.c(), z = c.c(), out = got.c();
          ASSERT_OK(samebits_compute_with_flags(op, &x, &y, &z, &out, &options, &each, &flags_in_c,
                                                nullptr));
          ASSERT_EQ(got.bytes, expected.bytes)
              << name(static_cast<operation>(op)) << name(f) << name(to);
          ASSERT_EQ(std::memcmp(got_each.data(), expected_each.data(), got_each.size()), 0);
          ASSERT_EQ(flags_in_c, static_cast<std::uint32_t>(raised));
          ASSERT_OK(samebits_compute(op, &x, &y, &z, &out, &options, nullptr));
          ASSERT_EQ(got.bytes, expected.bytes);
        });
      }
    }
  }
}

TEST(CArrays, OperandsThatAnOperationLacksMayBeNull) {
  matrix a = number_matrix(format_id::fp32, 1, 5);
  matrix got(format_id::fp32, 1, 5);
  const samebits_view x = a.c(), out = got.c();
  EXPECT_OK(
      samebits_compute(SAMEBITS_OPERATION_RINT, &x, nullptr, nullptr, &out, nullptr, nullptr));
  EXPECT_REFUSED(
      samebits_compute(SAMEBITS_OPERATION_ADD, &x, nullptr, nullptr, &out, nullptr, nullptr),
      SAMEBITS_INVALID_ARGUMENT, "b: must not be null");
}

TEST(CArrays, ReductionsOfEveryFormat) {
  for (const format_id f : with_arithmetic) {
    matrix m = random_matrix(f, 7, 333);
    matrix n = number_matrix(f, 7, 333);
    for (matrix* in : {&m, &n}) {
      const samebits_view x = in->c(), y = n.c();
      float amax_in_c = 0;
      ASSERT_OK(samebits_amax(&x, &amax_in_c, nullptr));
      EXPECT_TRUE(same_bytes(amax_in_c, amax(in->cpp())));
      samebits_element_counts counts_in_c = {};
      ASSERT_OK(samebits_counts(&x, &counts_in_c, nullptr));
      EXPECT_TRUE(same_bytes(counts_in_c, counts(in->cpp())));
      double number = 0;
      ASSERT_OK(samebits_sum(&x, &number, nullptr));
      EXPECT_TRUE(same_bytes(number, sum(in->cpp())));
      ASSERT_OK(samebits_sum_of_squares(&x, &number, nullptr));
      EXPECT_TRUE(same_bytes(number, sum_of_squares(in->cpp())));
      for (int p = 0; p < 2; ++p) {
        for (int o = 0; o < 2; ++o) {
          const samebits_dot_options options = {sizeof(samebits_dot_options), p, o};
          ASSERT_OK(samebits_dot(&x, &y, &options, &number, nullptr));
          EXPECT_TRUE(same_bytes(
              number,
              dot(in->cpp(), n.cpp(), {static_cast<accumulation>(p), static_cast<sum_order>(o)})));
        }
      }
    }
  }
}

TEST(CArrays, EnqueuedCallsRefuseHostMemory) {
  matrix m = number_matrix(format_id::fp32, 1, 4);
  const samebits_view x = m.c(), y = m.c();
  double number = 0;
  float amax_in_c = 0;
  samebits_element_counts counts_in_c = {};
  std::uint32_t raised = 0;
  size_t bytes = 0;
  const char* device = "device memory";
  EXPECT_REFUSED(samebits_enqueue_amax(&x, &amax_in_c, nullptr), SAMEBITS_INVALID_ARGUMENT, device);
  EXPECT_REFUSED(samebits_enqueue_counts(&x, &counts_in_c, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 device);
  EXPECT_REFUSED(samebits_enqueue_sum(&x, &number, nullptr, 0, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 device);
  EXPECT_REFUSED(samebits_enqueue_sum_of_squares(&x, &number, nullptr, 0, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, device);
  EXPECT_REFUSED(samebits_enqueue_dot(&x, &y, nullptr, &number, nullptr, 0, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, device);
  EXPECT_REFUSED(samebits_enqueue_compute_with_flags(SAMEBITS_OPERATION_RINT, &x, nullptr, nullptr,
                                                     &y, nullptr, nullptr, &raised, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, device);
  EXPECT_REFUSED(samebits_reduction_workspace(&x, &bytes, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 device);
}

}  // namespace
}  // namespace samebits::in_c
