// Optimizer steps: constants, laws between weight modes, checkpoints.
#include "samebits/optimizer.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/update/constants.hpp"
#include "numerics/update/lamb.hpp"
#include "numerics/update/lion.hpp"
#include "numerics/update/stored.hpp"
#include "support/refusal.hpp"
#include "unit/bf16_training.hpp"

namespace samebits {
namespace {

namespace n = numerics;
using enum stored_format;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

TEST(step_constants, have_the_steps_of_the_contract) {
  const optimizer_settings s = {.learning_rate = 1e-3, .weight_decay = 0.1};
  const n::update_constants c = n::constants_of(s, bits(1e-3), 3, bits(0.5f));
  const double b1 = static_cast<double>(0.9f);
  const double b2 = static_cast<double>(0.999f);
  const double c1 = 1 - b1 * (b1 * b1);
  const double c2 = 1 - b2 * (b2 * b2);
  EXPECT_EQ(c.grad_mul, bits(0.5f));
  EXPECT_EQ(c.b1, bits(0.9f));
  EXPECT_EQ(c.w1, bits(1 - 0.9f));
  EXPECT_EQ(c.b2, bits(0.999f));
  EXPECT_EQ(c.w2, bits(1 - 0.999f));
  EXPECT_EQ(c.rate, bits(static_cast<float>(1e-3 / c1)));
  EXPECT_EQ(c.root, bits(static_cast<float>(std::sqrt(c2))));
  EXPECT_EQ(c.eps, bits(1e-8f));
  EXPECT_EQ(c.l2, bits(0.1f));
  EXPECT_EQ(c.keep, bits(static_cast<float>(1 - 1e-3 * 0.1)));
  EXPECT_EQ(c.loss, bits(static_cast<float>(1e-3 * 0.1)));
  EXPECT_TRUE(c.decays);
  EXPECT_FALSE(c.first_step);
  EXPECT_TRUE(n::constants_of(s, bits(1e-3), 1, bits(1.0f)).first_step);
  EXPECT_FALSE(n::constants_of({}, bits(1e-3), 1, bits(1.0f)).decays);
}

TEST(step_constants, decay_above_one_is_negative) {
  const optimizer_settings s = {.learning_rate = 4, .weight_decay = 0.5};
  EXPECT_EQ(n::constants_of(s, bits(4.0), 1, bits(1.0f)).keep, bits(-1.0f));
}

TEST(rules, lion_moves_by_signs) {
  EXPECT_EQ(n::sign_of(0u), 0u);
  EXPECT_EQ(n::sign_of(0x80000000u), 0u);
  EXPECT_EQ(n::sign_of(1u), bits(1.0f));
  EXPECT_EQ(n::sign_of(0x80000001u), bits(-1.0f));
  EXPECT_EQ(n::sign_of(0x7F800000u), bits(1.0f));
  EXPECT_EQ(n::sign_of(0xFF800000u), bits(-1.0f));
  EXPECT_EQ(n::sign_of(0xFF800001u), 0xFF800001u);
}

TEST(rules, lamb_uses_norms_that_are_above_zero_and_finite) {
  const optimizer_settings s = {.rule = update_rule::lamb};
  const n::update_constants c = n::constants_of(s, bits(0.5), 1, bits(1.0f));
  const std::uint64_t inf = n::binary64::inf;
  EXPECT_EQ(n::lamb_factor(c, bits(3.0), bits(4.0)), bits(0.375f));
  EXPECT_EQ(n::lamb_factor(c, 0, bits(4.0)), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, bits(3.0), 0), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, inf, bits(4.0)), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, bits(3.0), inf), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, n::binary64::nan, bits(4.0)), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, bits(3.0), n::binary64::nan), bits(0.5f));
}

TEST(stored, blocks_of_zeros_have_the_scale_one) {
  for (const stored_format f : {fp16_scaled, e4m3_scaled, e5m2_scaled}) {
    const n::tile_scale s = n::block_scale(f, 0);
    EXPECT_EQ(s.dequantization_scale, n::binary32::one);
    EXPECT_EQ(s.factor, n::binary32::one);
  }
}

TEST(stored, fp16_blocks_have_powers_of_two_as_scales) {
  const auto scale = [](float amax) { return n::block_scale(fp16_scaled, bits(amax)); };
  EXPECT_EQ(scale(1.5f).dequantization_scale, bits(0x1p-14f));
  EXPECT_EQ(scale(1.5f).factor, bits(0x1p14f));
  EXPECT_EQ(scale(0x1p-112f).dequantization_scale, bits(0x1p-126f));
  EXPECT_EQ(scale(0x1p-111f).dequantization_scale, bits(0x1p-125f));
  EXPECT_EQ(scale(0x1p-140f).dequantization_scale, bits(0x1p-126f));
  EXPECT_EQ(scale(0x1p-140f).factor, bits(0x1p126f));
  EXPECT_EQ(n::block_scale(fp16_scaled, n::binary32::nan).dequantization_scale, bits(0x1p114f));
}

TEST(stored, split_weights_join_to_the_same_number) {
  for (std::uint64_t x = 0; x < (1u << 31) + (std::uint64_t{1} << 31); x += 65521) {
    const auto word = static_cast<std::uint32_t>(x);
    const auto halves = n::split_weight(word);
    if (n::binary32::is_nan(word)) {
      EXPECT_EQ(halves.high, 0x7FFFu);
      EXPECT_TRUE(n::binary32::is_nan(n::joined_weight(halves)));
    } else {
      ASSERT_EQ(n::joined_weight(halves), word);
    }
  }
  EXPECT_EQ(n::split_weight<std::uint32_t>(0x3F808000).high, 0x3F81u);  // a tie goes away from zero
  EXPECT_EQ(n::split_weight<std::uint32_t>(0x7FFFFFFF).high, 0x7FFFu);
  EXPECT_EQ(n::split_weight<std::uint32_t>(0xFFC00000).high, 0x7FFFu);
}

TEST(optimizer, split_weights_follow_master_weights) {
  bf16_training with_master;
  bf16_training with_halves;
  with_master.train(true, low_part::none, 30);
  with_halves.train(false, low_part::split, 30);
  for (std::size_t i = 0; i < 1000; ++i) {
    const n::two_halves<std::uint32_t> x = {with_halves.weights[i], with_halves.low[i]};
    ASSERT_EQ(n::joined_weight(x), bits(with_master.master[i])) << i;
  }
  EXPECT_EQ(with_halves.first, with_master.first);
}

TEST(optimizer, checkpoints_restore_states_settings_and_counters) {
  bf16_training whole;
  whole.train(true, low_part::none, 12);
  bf16_training first;
  first.train(true, low_part::none, 5);
  const std::vector<std::byte> bytes =
      save(optimizer_list({first.tensor(true, low_part::none)}),
           {.groups = {first.settings}, .applied_steps = first.steps, .seed = 7});
  bf16_training resumed;
  resumed.weights = first.weights;
  const optimizer_checkpoint read =
      load_optimizer(optimizer_list({resumed.tensor(true, low_part::none)}), bytes);
  EXPECT_EQ(read.groups, std::vector{first.settings});
  EXPECT_EQ(read.seed, 7u);
  resumed.steps = read.applied_steps;
  resumed.train(true, low_part::none, 7);
  EXPECT_EQ(resumed.master, whole.master);
  EXPECT_EQ(resumed.weights, whole.weights);
}

TEST(optimizer, checkpoints_of_other_tensors_are_refused) {
  bf16_training training;
  optimizer_tensor tensor = training.tensor(true, low_part::none);
  std::vector<std::byte> bytes = save(optimizer_list({tensor}), {.groups = {training.settings}});
  const auto refused = [](optimizer_tensor t, std::vector<std::byte> from) {
    return support::refusal_of([&] { load_optimizer(optimizer_list({t}), from); });
  };
  tensor.count = 999;
  EXPECT_EQ(refused(tensor, bytes),
            "tensors[0] '': sizes, formats, stream or block differ from the saved ones");
  tensor.count = 1000;
  tensor.name = "fc2";
  EXPECT_EQ(refused(tensor, bytes), "tensors[0] 'fc2': the saved tensor is ''");
  tensor.name = "";
  bytes.pop_back();
  EXPECT_EQ(refused(tensor, bytes), "bytes: hold 11999 bytes of arrays, the tensors need 12000");
  bytes.resize(100);
  EXPECT_EQ(refused(tensor, bytes), "bytes: end too early");
  bytes[15] = std::byte{'2'};
  EXPECT_EQ(refused(tensor, bytes),
            "bytes: are no checkpoint of an optimizer, or of an unknown version");
}

TEST(random_streams, of_purposes_tensors_and_steps_differ) {
  EXPECT_EQ(random_stream_number(stream_purpose::second_state, 5, 7), 0x0300000500000007u);
  EXPECT_EQ(random_stream_number(stream_purpose::weights, 0xFFFFFF, 0xFFFFFFFF),
            0x01FFFFFFFFFFFFFFu);
  EXPECT_EQ(random_stream_number(stream_purpose::caller, 0, std::uint64_t{1} << 32), 0u);
}

}  // namespace
}  // namespace samebits
