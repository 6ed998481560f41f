// FTZ, DAZ and the rounding direction changed at run time, in this thread and in others.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "backends/verify/verify.hpp"
#include "environment/broken_process.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "numerics/loss_scale/report_ring.hpp"
#include "samebits/distributed.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/optimizer.hpp"
#include "samebits/quantize.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::support {
namespace {

constexpr unsigned ftz = 0x8000, daz = 0x0040, down = 0x2000, up = 0x4000, zero = 0x6000;

class ProcessorState : public ::testing::Test {
 protected:
  void TearDown() override { _mm_setcsr(at_start_); }
  void set(unsigned bits) const { _mm_setcsr(at_start_ | bits); }
  const unsigned at_start_ = _mm_getcsr();
};

// The first call of the process fails, and is not remembered as passed: must run first.
TEST_F(ProcessorState, AFailedFirstCallIsNotRemembered) {
  set(ftz);
  EXPECT_TRUE(contains(tree_sum_refusal(), "flush_to_zero: "));
  EXPECT_TRUE(contains(tree_sum_refusal(), "flush_to_zero: "));
  set(0);
  expect_tree_sum_works();
}

TEST_F(ProcessorState, SumsOverRanksAreRefused) {
  single_rank ranks;
  std::vector<float> gradient = {0x1p-127f, 3.0f};
  const std::vector<float> before = gradient;
  const matrix_view list[] = {view_of(gradient)};
  const tree_part part;
  for (const unsigned bits : {ftz, daz, down, up, zero}) {
    SCOPED_TRACE(bits);
    set(bits);
    EXPECT_FALSE(refusal([&] { reduce_gradients(ranks, list); }).empty());
    EXPECT_FALSE(refusal([&] { sum_shards(ranks, {&part, 1}); }).empty());
    EXPECT_FALSE(refusal([&] { tree_part().add_squares(list[0]); }).empty());
    set(0);
    EXPECT_EQ(gradient, before);
  }
  reduce_gradients(ranks, list, {.communication = format_id::fp32});
  EXPECT_EQ(gradient, before);
}

// Integers: nothing to refuse.
TEST_F(ProcessorState, DecisionsHold) {
  const auto step = [] {
    numerics::resident_scaler<native_state> scaler = {initial_state(native_scaling{})};
    const step_report r =
        decide(native_scaling{}, scaler, {}, {.squares = 0x1p-1060, .max_norm = 0x1p-1073});
    return std::bit_cast<numerics::report_words>(r);
  };
  const numerics::report_words expected = step();
  for (const unsigned bits : {ftz | daz, down, up, zero}) {
    set(bits);
    const numerics::report_words got = step();
    set(0);
    EXPECT_TRUE(std::ranges::equal(got.word, expected.word)) << bits;
  }
}

// Kernels set their own control register, and the rest is integers.
TEST_F(ProcessorState, OptimizerStepsHold) {
  struct arrays {
    std::vector<float> weights = std::vector<float>(100, 0x1.8p-130f);
    std::vector<float> gradient = std::vector<float>(100, 0x1.1p-140f);
    std::vector<float> first = std::vector<float>(100, 0x1p-149f);
    std::vector<float> second = std::vector<float>(100, 0x1.3p-127f);
    bool operator==(const arrays&) const = default;
  };
  const float rate = 0x1p-140f;
  const auto stepped = [&](const std::string& backend, unsigned bits) {
    arrays a;
    const optimizer_list list({{.weights = {a.weights.data(), stored_format::fp32},
                                .gradient = {a.gradient.data(), stored_format::fp32},
                                .states = {{{a.first.data(), stored_format::fp32},
                                            {a.second.data(), stored_format::fp32}}},
                                .count = 100}});
    const optimizer_settings lion = {.rule = update_rule::lion, .weight_decay = 1.0};
    const optimizer_settings adam = {.eps = 1e-40, .weight_decay = 0x1p-1060};
    set(bits);
    optimizer_step(list, {&lion, 1}, {.learning_rates = &rate}, find_executor(backend));
    optimizer_step(list, {&adam, 1}, {.learning_rates = &rate}, find_executor(backend));
    set(0);
    return a;
  };
  const arrays expected = stepped("reference", 0);
  for (const std::string& backend : supported_backends()) {
    for (const unsigned bits : {ftz | daz, down, up, zero}) {
      EXPECT_EQ(stepped(backend, bits), expected) << backend << " " << bits;
    }
  }
}

TEST_F(ProcessorState, EachBitIsSeenAfterTheBackendHasPassed) {
  initialize();
  expect_tree_sum_works();
  for (const unsigned bits : {ftz, daz, down, up, zero, ftz | daz}) {
    SCOPED_TRACE(bits);
    set(bits);
    const std::string why = tree_sum_refusal();
    EXPECT_EQ(contains(why, "FTZ is set"), (bits & ftz) != 0) << why;
    EXPECT_EQ(contains(why, "DAZ is set"), (bits & daz) != 0) << why;
    EXPECT_EQ(contains(why, "rounding is not to nearest"), (bits & zero) != 0) << why;
    set(0);
    expect_tree_sum_works();
  }
}

TEST_F(ProcessorState, TheProbesSeeTheBitsByTheirResults) {
  for (const std::string& backend : supported_backends()) {
    SCOPED_TRACE(backend);
    using names = std::set<std::string>;
    EXPECT_EQ(failed_checks(backend), names{});
    set(ftz);
    EXPECT_EQ(failed_checks(backend), (names{"control_register", "flush_to_zero"}));
    set(daz);
    EXPECT_EQ(failed_checks(backend), (names{"control_register", "denormals_are_zero"}));
    for (const unsigned direction : {down, up, zero}) {
      set(direction);
      const names failed = failed_checks(backend);
      EXPECT_TRUE(failed.contains("control_register"));
      EXPECT_TRUE(failed.contains("rounding_direction"));
      EXPECT_TRUE(failed.contains("division"));
      EXPECT_FALSE(failed.contains("flush_to_zero"));
    }
    set(0);
  }
}

TEST_F(ProcessorState, VerificationCountsTheFailedChecks) {
  for (const std::string& name : supported_backends()) {
    const backends::backend& b = backends::by_name(name);
    const verification right = backends::verification::self_test_entry_of(b);
    EXPECT_GT(right.compared, 5u);
    EXPECT_EQ(right.differed, 0u) << right.first_difference;
    set(ftz);
    const verification wrong = backends::verification::self_test_entry_of(b);
    set(0);
    EXPECT_EQ(wrong.differed, 2u) << name;  // control_register, flush_to_zero
    EXPECT_FALSE(wrong.first_difference.empty());
  }
}

TEST_F(ProcessorState, FesetroundIsSeen) {
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  EXPECT_TRUE(contains(tree_sum_refusal(), "rounding is not to nearest"));
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  expect_tree_sum_works();
}

TEST_F(ProcessorState, AThreadInheritsItAndChangesItForItselfAlone) {
  initialize("reference");
  set(ftz | daz);
  std::thread([] { EXPECT_TRUE(contains(tree_sum_refusal(), "FTZ is set, DAZ is set")); }).join();
  set(0);
  std::thread([] { expect_tree_sum_works(); }).join();
  std::thread([this] {
    set(ftz);
    tree_sum_refusal();
  }).join();
  expect_tree_sum_works();
}

TEST_F(ProcessorState, ConversionsHoldWithThreadsInEveryState) {
  for (const unsigned bits : {ftz | daz, ftz | daz | up, zero}) {
    set(bits);
    expect_conversions_hold();
  }
}

// Loss scales that pass through all of binary32's subnormals, in 1500 bad and good steps, with a
// checkpoint after each; their products are rounded.
TEST_F(ProcessorState, LossScalesHoldInEveryState) {
  for (const scaling_policy policy :
       {scaling_policy::torch, scaling_policy::apex, scaling_policy::apex_amp,
        scaling_policy::megatron, scaling_policy::deepspeed, scaling_policy::native}) {
    scaling_settings settings = default_settings(policy);
    if (auto* torch = std::get_if<torch_scaling>(&settings)) {
      *torch = {.init_scale = 0x1p-120,
                .growth_factor = 1.1,
                .backoff_factor = 0.9,
                .growth_interval = 3};
    } else if (auto* megatron = std::get_if<megatron_scaling>(&settings)) {
      *megatron = {.initial_scale = 0x1p-120,
                   .min_scale = 0x1.8p-140,
                   .growth_factor = 1.1,
                   .backoff_factor = 0.9,
                   .growth_interval = 3};
    }
    const auto scenarios = [&] {
      loss_scaler scaler(settings);
      std::string all;
      for (int step = 0; step < 1500; ++step) {
        scaler.scale(0x1p-30f);
        scaler.observe({.nonfinite = step % 3 != 0});
        scaler.update();
        const std::string text = scaler.save();
        scaler = loss_scaler::load(text);
        scaler.import_state(
            policy == scaling_policy::native ? scaling_policy::torch : policy,
            scaler.export_state(policy == scaling_policy::native ? scaling_policy::torch : policy));
        all += text + std::to_string(std::bit_cast<std::uint32_t>(scaler.scale(0x1.8p-30f)));
        scaler.observe({});
        scaler.update();
      }
      return all;
    };
    if (policy == scaling_policy::deepspeed) set_option(settings, "raise_error_at_min_scale", "0");
    const std::string expected = scenarios();
    for (const unsigned bits : {ftz | daz, ftz | daz | up, zero}) {
      set(bits);
      const std::string got = scenarios();
      set(0);
      EXPECT_EQ(got, expected) << name(policy) << ", " << bits;
    }
  }
}

// Elements of every magnitude, with products and sums that are subnormal, in every rounding.
TEST_F(ProcessorState, ListOperationsHoldOnEveryBackend) {
  std::vector<float> sums;
  std::vector<fp16> gradients;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    sums.push_back(std::bit_cast<float>((i * 2654435761u) & 0xBFFFFFFFu));
    gradients.push_back(fp16::from_bits(static_cast<std::uint16_t>((i * 40503u) & 0xBFFFu)));
  }
  const auto run = [&](const std::string& backend) {
    std::vector<float> s = sums;
    std::vector<fp16> g = gradients;
    const tensor_list acc({{view_of(s)}});
    const tensor_list parts({{view_of(g)}});
    const executor where = {backend, 2, nullptr};
    const float small = 0x1.6p-118f;
    accumulate(acc, parts, {&small}, where);
    unscale(parts, 0x1.6p-9f, where);
    axpby(0x1.2p-20f, acc, 3, parts, acc, where);
    const inspect_report seen = inspect(acc, {inspect_counts::distribution}, where);
    const float factor = clip_factor(seen.total.norm(), 0x1p-1040);
    std::vector<std::uint32_t> all = {std::bit_cast<std::uint32_t>(factor), seen.total.amax_bits};
    for (const std::uint64_t word : {std::bit_cast<std::uint64_t>(seen.total.squares),
                                     std::bit_cast<std::uint64_t>(seen.total.norm()),
                                     std::bit_cast<std::uint64_t>(clip(acc, 0x1p-3, where).norm)}) {
      all.push_back(static_cast<std::uint32_t>(word));
      all.push_back(static_cast<std::uint32_t>(word >> 32));
    }
    for (const float x : s) all.push_back(std::bit_cast<std::uint32_t>(x));
    for (const fp16 x : g) all.push_back(x.bits());
    return all;
  };
  const auto expected = run("reference");
  for (const unsigned bits : {0u, ftz | daz, ftz | daz | up, zero}) {
    for (const std::string& backend : supported_backends()) {
      set(bits);
      const auto got = run(backend);
      set(0);
      EXPECT_TRUE(got == expected) << backend << ", " << bits;
    }
  }
}

// Operands of every magnitude, subnormal ones too. Steps round, and results may be subnormal.
TEST_F(ProcessorState, FunctionsHoldOnEveryBackend) {
  std::vector<float> x, grad;
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    x.push_back(std::bit_cast<float>(i * 2654435761u));
    grad.push_back(std::bit_cast<float>((i * 0x9E3779B1u) & 0x80FFFFFFu));  // below 2^-125
  }
  const auto run = [&](function f, const std::string& backend) {
    std::vector<float> y(2 * x.size());
    evaluate_options options{.rule = function_rule::torch_2_11};
    if (f == function::pow) options.parameter = 1.0 + 0x1p-52;  // the gradient's exponent: 2^-52
    const auto part = [&](std::ptrdiff_t first) {
      return matrix_view{y.data() + first, format_id::fp32, 1, static_cast<std::int64_t>(x.size())};
    };
    const executor where = {backend, 2, nullptr};
    evaluate(f, view_of(x), part(0), options, where);
    evaluate_gradient(f, view_of(grad), view_of(x), part(std::ssize(x)), options, where);
    std::vector<std::uint32_t> codes;
    for (const float result : y) codes.push_back(std::bit_cast<std::uint32_t>(result));
    return codes;
  };
  for (const function f : {function::exp, function::log, function::tanh, function::gelu,
                           function::rsqrt, function::silu, function::pow, function::expm1}) {
    const auto expected = run(f, "reference");
    for (const unsigned bits : {ftz | daz, down, ftz | daz | up, zero}) {
      for (const std::string& backend : supported_backends()) {
        set(bits);
        const auto got = run(f, backend);
        const unsigned after = _mm_getcsr() & 0xE040u;
        set(0);
        EXPECT_TRUE(got == expected) << name(f) << ", " << backend << ", " << bits;
        EXPECT_EQ(after, bits) << backend;  // the caller's again
      }
    }
  }
}

// Tiles of every magnitude, subnormal ones too, whose scales and elements are rounded and
// subnormal.
TEST_F(ProcessorState, QuantizationHoldsOnEveryBackendAndStatisticsAreRefused) {
  constexpr std::int64_t rows = 256, cols = 16;
  std::vector<std::uint32_t> x;
  for (std::uint32_t i = 0; i < rows * cols; ++i) x.push_back(i / 16 << 23 | i * 2654435761u >> 9);
  std::vector<std::uint8_t> codes(x.size());
  std::vector<std::uint32_t> scales(rows);
  quantize_outputs outputs = {.codes = view_of_codes(format_id::e4m3, codes.data(), rows, cols),
                              .scales = view_of_codes(format_id::fp32, scales.data(), rows, 1)};
  const auto run = [&](scale_rule rule, const std::string& backend = "reference") {
    const void* data = x.data();
    quantize(view_of_codes(format_id::fp32, data, rows, cols), outputs,
             {.tile = {1, 16}, .scale = rule, .nonfinite = nonfinite::propagate},
             {backend, 2, nullptr});
  };
  for (const scale_rule rule :
       {scale_rule::te, scale_rule::div, scale_rule::rcp, scale_rule::pow2}) {
    outputs.statistics = nullptr;
    run(rule);
    const auto expected_codes = codes;
    const auto expected_scales = scales;
    for (const unsigned bits : {ftz | daz, ftz | daz | up, zero}) {
      set(bits);
      codes.assign(codes.size(), 0xA5);
      scales.assign(scales.size(), 0xA5A5A5A5u);
      quantize_statistics statistics;
      outputs.statistics = &statistics;
      EXPECT_FALSE(refusal([&] { run(rule); }).empty());
      EXPECT_EQ(codes, std::vector<std::uint8_t>(codes.size(), 0xA5));
      EXPECT_EQ(statistics.elements, 0u);
      outputs.statistics = nullptr;
      for (const std::string& backend : supported_backends()) {
        codes.assign(codes.size(), 0xA5);
        scales.assign(scales.size(), 0xA5A5A5A5u);
        run(rule, backend);
        EXPECT_EQ(codes, expected_codes) << backend;
        EXPECT_EQ(scales, expected_scales) << backend;
        EXPECT_EQ(_mm_getcsr() & 0xE040u, bits) << backend;  // the caller's again
      }
      set(0);
    }
  }
}

}  // namespace
}  // namespace samebits::support
