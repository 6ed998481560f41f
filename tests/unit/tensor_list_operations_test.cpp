// Operations over tensor lists: empty lists, reports, and what is refused. engine.lists_oracle
// compares every element and figure with the oracle.
#include "samebits/tensor_list.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "numerics/tensor_list/list_ops.hpp"
#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

using support::contains, support::expect_refusal;

TEST(ListOps, NothingToInspect) {
  EXPECT_EQ(inspect(tensor_list()), inspect_report{});
  std::vector<float> none;
  std::vector<float> one = {2};
  const inspect_report seen = inspect(tensor_list({{view_of(none)}, {view_of(one)}}));
  EXPECT_EQ(seen.tensors[0], tensor_statistics{});
  EXPECT_EQ(seen.total.squares, 4.0);
  EXPECT_EQ(seen.tensors[1].norm(), 2.0);
  EXPECT_EQ(seen.first_bad, -1);
}

TEST(ListOps, ObservationsAreWhatTheScalerTakes) {
  std::vector<float> gradient = {1, 2};
  const tensor_list list({{view_of(gradient)}});
  loss_scaler scaler;
  const auto step = [&](float second) {
    gradient[1] = second;
    scaler.observe(inspect(list).observation());
    scaler.step([] {});
    return scaler.update();
  };
  EXPECT_TRUE(step(2).apply);
  EXPECT_EQ(step(infinity).cause, step_cause::overflow);
  EXPECT_EQ(step(nan).cause, step_cause::nan);
  EXPECT_EQ(inspect(list).observation().amax, 0x7FFFFFFFu);
}

TEST(ListOps, TheScalerUnscalesAList) {
  std::vector<float> gradient = {65536, 131072};
  const tensor_list list({{view_of(gradient)}});
  loss_scaler scaler;
  EXPECT_EQ(scaler.unscale(list).amax_bits, bits(131072.0f));
  EXPECT_EQ(gradient, (std::vector<float>{1, 2}));
  EXPECT_THROW(scaler.unscale(list), call_order_error);
  EXPECT_TRUE(scaler.step([] {}));
}

TEST(ListOps, ClipFactor) {
  EXPECT_EQ(clip_factor(0.5, 1), 1.0f);
  EXPECT_EQ(clip_factor(0, 0), 0.0f);
  EXPECT_EQ(clip_factor(-0.0, 1), 1.0f);
  EXPECT_EQ(clip_factor(2, 1), static_cast<float>(1 / (2 + 1e-6)));
  EXPECT_EQ(clip_factor(3, infinity), 1.0f);
  EXPECT_EQ(clip_factor(infinity, 1), 0.0f);
  EXPECT_TRUE(std::isnan(clip_factor(infinity, infinity)));
  EXPECT_EQ(bits(clip_factor(-nan, 1)), 0x7FFFFFFFu);
  EXPECT_THROW(clip_factor(-1, 1), invalid_argument);
  EXPECT_THROW(clip_factor(1, -1), invalid_argument);
  EXPECT_THROW(clip_factor(1, nan), invalid_argument);
}

TEST(ListOps, AllOperandsMayBeOne) {
  std::vector<float> x = {1, 2, 3};
  const tensor_list list({{view_of(x)}});
  accumulate(list, list);
  EXPECT_EQ(x, (std::vector<float>{2, 4, 6}));
  axpby(2, list, 1, list, list);
  EXPECT_EQ(x, (std::vector<float>{6, 12, 18}));
  cast(list, list);
  EXPECT_EQ(x, (std::vector<float>{6, 12, 18}));
}

TEST(ListOps, RefusedFormatsAndShapes) {
  std::vector<float> a(4), b(4), c(5);
  std::vector<e5m2> codes(4);
  const tensor_list floats({{view_of(a), "a"}});
  const tensor_list longer({{view_of(c), "c"}});
  const tensor_list narrow({{view_of(codes), "codes"}});
  const std::string format = "'codes': format must be fp32, fp16 or bf16, got e5m2";
  expect_refusal("tensors[0] " + format, [&] { inspect(narrow); });
  expect_refusal(format, [&] { unscale(narrow, 1); });
  expect_refusal(format, [&] { scale(narrow, 1); });
  expect_refusal(format, [&] { clip(narrow, 1); });
  expect_refusal("acc[0] " + format, [&] { accumulate(narrow, floats); });
  expect_refusal("x[0] " + format, [&] { axpby(1, narrow, 1, floats, floats); });
  expect_refusal("y[0] " + format, [&] { axpby(1, floats, 1, narrow, floats); });
  expect_refusal("out[0] " + format, [&] { axpby(1, floats, 1, floats, narrow); });
  expect_refusal("acc[0] 'a': shape must be that of gradients[0] 'c', [1, 5], got [1, 4]",
                 [&] { accumulate(floats, longer); });
  expect_refusal("to: must have as many tensors as from, 1, got 0",
                 [&] { cast(floats, tensor_list()); });
  expect_refusal("factor: must not be NaN", [&] { scale(floats, nan); });
  expect_refusal("a: must not", [&] { axpby(nan, floats, 1, floats, floats); });
  expect_refusal("inverse_scale", [&] { unscale(floats, -1.0f); });
  expect_refusal("options.counts", [&] { inspect(floats, {static_cast<inspect_counts>(9)}); });
  expect_refusal("where.threads", [&] { inspect(floats, {}, {.threads = -1}); });
  expect_refusal("abacus", [&] { inspect(floats, {}, {.backend = "abacus"}); });
}

TEST(ListOps, RefusedOverlaps) {
  std::vector<float> m(100);
  const auto list = [&](std::int64_t first, std::int64_t count, std::int64_t second) {
    return tensor_list({{view_of(m.data() + first, 1, count), "one"},
                        {view_of(m.data() + second, 1, count), "two"}});
  };
  const auto says = [&](const tensor_list& acc, const tensor_list& x) {
    return support::refusal_of([&] { accumulate(acc, x); });
  };
  EXPECT_EQ(says(list(0, 10, 10), list(20, 10, 30)), "");
  EXPECT_EQ(says(list(0, 10, 50), list(0, 10, 60)), "");
  EXPECT_TRUE(contains(says(list(0, 10, 50), list(20, 10, 41)),
                       "acc[1] 'two': overlaps gradients[1] 'two'"));
  EXPECT_TRUE(contains(says(list(0, 10, 50), list(50, 10, 70)),
                       "acc[1] 'two': overlaps gradients[0] 'one'"));
  EXPECT_TRUE(contains(says(list(0, 10, 50), list(70, 10, 1)),
                       "acc[0] 'one': overlaps gradients[1] 'two'"));
}

constexpr bool rules_are_constant_expressions() {
  numerics::square_sum sum;
  sum.add(numerics::square(0x40400000u));  // 3
  sum.add(numerics::square(0xC0800000u));  // -4
  const format_spec fp16_format = spec_of(format_id::fp16);
  return numerics::norm_of(sum.value()) == 0x4014000000000000u &&
         numerics::clip_factor(0x4014000000000000u, 0x4024000000000000u) == 0x3F800000u &&
         numerics::scaled_code(fp16_format, 0x3C00u, 0x3F000000u) == 0x3800u &&
         numerics::accumulated_code(fp16_format, 0x3C00u, fp16_format, 0x3C00u, 0x3F800000u) ==
             0x4000u &&
         // 2 * 1.5 + 0.5 * 1
         numerics::combined_code(fp16_format, 0x40000000u, fp16_format, 0x3E00u, 0x3F000000u,
                                 spec_of(format_id::bf16), 0x3F80u) == 0x4300u;
}
static_assert(rules_are_constant_expressions());

}  // namespace
}  // namespace samebits
