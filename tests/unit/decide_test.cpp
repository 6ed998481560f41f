// decide(): the decisions of the host's loss_scaler, and norm and factor by the processor's steps.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <variant>

#include "numerics/loss_scale/decide.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t inf_bits = 0x7F800000;

/// What a step saw: mostly finite gradients, all kinds of faults.
rank_observation random_observation(std::mt19937_64& random) {
  rank_observation o;
  o.seen.amax = static_cast<std::uint32_t>(random() % inf_bits);
  switch (random() % 12) {
    case 0: o.seen.amax = inf_bits; break;
    case 1: o.seen.amax = 0x7FFFFFFF; break;
    case 2: o.seen.amax = amax_unknown; break;
    case 3: o.seen = {.nonfinite = true}; break;
    case 4: o.seen = {.nonfinite = true, .loss_nonfinite = true}; break;
    case 5: o.seen.unscaled_nonfinite = true; break;
    default: break;
  }
  if (o.seen.nonfinite) o.first_bad = static_cast<std::int64_t>(random() % 99);
  if (o.seen.nonfinite) o.bad_rank = static_cast<std::int64_t>(random() % 8);
  return o;
}

template <class Settings>
void compare_with_host(const Settings& settings, std::uint64_t seed) {
  loss_scaler host(settings);
  numerics::resident_scaler<decltype(initial_state(settings))> resident = {initial_state(settings)};
  std::mt19937_64 random(seed);
  int skipped = 0;
  for (std::uint64_t step = 0; step < 3000; ++step) {
    const rank_observation o = random_observation(random);
    const double scale = host.get_scale();
    host.observe(o.seen);
    const bool applied = host.step([] {});
    step_decision d;
    try {
      d = host.update();
    } catch (const scale_exhausted&) {
      d.stop = true;
    }
    const step_report r = decide(settings, resident, o);
    ASSERT_EQ(r.step, step);
    ASSERT_EQ(r.applied, applied);
    ASSERT_EQ(r.applied_steps, host.applied_steps());
    ASSERT_EQ(r.scale, scale);
    ASSERT_EQ(r.stop, d.stop);
    if (!d.stop) {
      ASSERT_EQ(r.cause, d.cause);
      ASSERT_EQ(r.change, d.change);
    }
    ASSERT_TRUE(resident.policy == std::get<decltype(initial_state(settings))>(host.state()));
    ASSERT_EQ(r.amax_bits, o.seen.amax);
    ASSERT_EQ(r.first_bad, o.first_bad);
    ASSERT_EQ(r.bad_rank, o.bad_rank);
    ASSERT_TRUE(std::isnan(r.norm));
    ASSERT_EQ(r.grad_mul, applied ? static_cast<float>(1.0 / scale) : 0.0f);
    if (scale > 0 && scale < infinity) {
      ASSERT_EQ(r.exponent, std::ilogb(scale));
    }
    skipped += applied ? 0 : 1;
  }
  EXPECT_GT(skipped, 300);
  EXPECT_LT(skipped, 2700);
}

TEST(Decide, AsTheHostsScalerDoes) {
  for (int p = 0; p < enum_count<scaling_policy>; ++p) {
    const auto settings = default_settings(static_cast<scaling_policy>(p));
    std::visit([&](const auto& s) { compare_with_host(s, static_cast<std::uint64_t>(p)); },
               settings);
  }
}

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

// volatile: the processor's own steps, not the compiler's.
TEST(Decide, NormAndFactorAreTheProcessorsSteps) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300'000; ++i) {
    const native_scaling settings = {.init_exponent =
                                         static_cast<std::int32_t>(random() % 39) - 14};
    numerics::resident_scaler<native_state> scaler = {initial_state(settings)};
    const float inverse = std::ldexp(1.0f, -settings.init_exponent);
    // Sums of every magnitude, and of the usual ones; limits around the norm.
    const double squares = std::bit_cast<double>(
        i % 101 == 0 ? 0
        : i % 2 == 0 ? random() % 0x7FF0000000000000u
                     : (std::uint64_t{1023 - 40} + random() % 80) << 52 | random() >> 12);
    const double max_norm = i % 8 == 0    ? infinity
                            : i % 97 == 0 ? 0
                                          : std::ldexp(std::sqrt(squares) * inverse,
                                                       static_cast<int>(random() % 7) - 3);
    const step_report r = decide(settings, scaler, {}, {.squares = squares, .max_norm = max_norm});
    volatile double root = std::sqrt(squares);
    volatile double norm = root * static_cast<double>(inverse);
    volatile double raised = norm + 1e-6;
    volatile double ratio = max_norm / raised;
    volatile float clip = static_cast<float>(ratio < 1.0 ? ratio : 1.0);
    volatile float factor = inverse * clip;
    ASSERT_TRUE(r.applied);
    ASSERT_EQ(bits(r.norm), bits(norm)) << squares;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(r.grad_mul), std::bit_cast<std::uint32_t>(+factor))
        << squares << " " << max_norm;
  }
}

TEST(Decide, ASumThatIsNotFiniteSkips) {
  for (const std::uint64_t bad :
       {bits(infinity), 0x7FF8000000000000u, 0xFFF8000000000000u, 0x7FFFFFFFFFFFFFFFu}) {
    const native_scaling settings = {};
    numerics::resident_scaler<native_state> scaler = {initial_state(settings)};
    const step_report r =
        decide(settings, scaler, {}, {.squares = std::bit_cast<double>(bad), .max_norm = 1});
    EXPECT_FALSE(r.applied);
    EXPECT_EQ(r.cause, step_cause::nonfinite);
    EXPECT_EQ(r.grad_mul, 0.0f);
    EXPECT_EQ(bits(r.norm), bad == bits(infinity) ? bad : 0x7FFFFFFFFFFFFFFFu);
    EXPECT_EQ(scaler.steps, 1u);
    EXPECT_EQ(scaler.applied_steps, 0u);
  }
}

TEST(Decide, ARefusedStepChangesTheCountAlone) {
  numerics::resident_scaler<torch_state> scaler = {
      {.scale = 0x1.8p+5f, .growth_tracker = 7}, 30, 20};
  rank_observation seen = {.seen = {.nonfinite = true, .amax = inf_bits}, .first_bad = 4};
  seen.bad_rank = 2;
  const step_report r = numerics::refused_step(scaler, seen);
  EXPECT_EQ(scaler.policy, (torch_state{.scale = 0x1.8p+5f, .growth_tracker = 7}));
  EXPECT_EQ(scaler.steps, 31u);
  EXPECT_EQ(scaler.applied_steps, 20u);
  EXPECT_EQ(r.step, 30u);
  EXPECT_EQ(r.applied_steps, 20u);
  EXPECT_EQ(r.scale, 48.0);
  EXPECT_EQ(r.exponent, 5);
  EXPECT_TRUE(std::isnan(r.norm));
  EXPECT_EQ(r.first_bad, 4);
  EXPECT_EQ(r.bad_rank, 2);
  EXPECT_EQ(r.amax_bits, inf_bits);
  EXPECT_EQ(r.grad_mul, 0.0f);
  EXPECT_FALSE(r.applied);
  EXPECT_TRUE(r.stop);
  EXPECT_EQ(r.cause, step_cause::ranks_differ);
  EXPECT_EQ(r.change, scale_change::kept);
}

/// A maximum of -0 is one of 0: everything is clipped away.
TEST(Decide, MaxNormHasNoSign) {
  const native_scaling settings = {};
  for (const double max_norm : {0.0, -0.0}) {
    numerics::resident_scaler<native_state> scaler = {initial_state(settings)};
    const step_report r = decide(settings, scaler, {.seen = {.amax = 0x3F800000}},
                                 {.squares = 4, .max_norm = max_norm});
    EXPECT_TRUE(r.applied);
    EXPECT_EQ(r.grad_mul, 0.0f);
  }
}

constexpr step_report at_compile_time() {
  const native_scaling settings = {};
  numerics::resident_scaler<native_state> scaler = {numerics::initial_state(settings)};
  decide(settings, scaler, {.seen = {.amax = inf_bits}, .first_bad = 4});
  return decide(settings, scaler, {.seen = {.amax = 0x3F800000}}, {.squares = 4, .max_norm = 1e-9});
}
static_assert(at_compile_time().step == 1 && at_compile_time().applied_steps == 1);
// A scale that has no exponent reports its nearest neighbour's.
static_assert(numerics::exponent_of(0) == -1074 && numerics::exponent_of(1) == -1074);
static_assert(numerics::exponent_of(numerics::binary64::inf) == 1023);
static_assert(numerics::exponent_of(numerics::binary64::inf - 1) == 1023);

// Sums, norms and factors that are not finite.
constexpr std::uint64_t one64 = numerics::binary64::one;
constexpr std::uint64_t inf64 = numerics::binary64::inf;
constexpr std::uint64_t nan64 = numerics::binary64::nan;
static_assert(numerics::add_squares(inf64, one64) == inf64);
static_assert(numerics::add_squares(one64, inf64) == inf64);
static_assert(numerics::add_squares(nan64, one64) == nan64);
static_assert(numerics::add_squares(one64, 0xFFF8000000000000u) == nan64);
constexpr std::uint64_t sum_of(std::initializer_list<std::uint64_t> inputs) {
  numerics::square_sum sum;
  for (const std::uint64_t input : inputs) sum.add(input);
  return sum.value();
}
static_assert(sum_of({}) == 0 && sum_of({one64}) == one64 && sum_of({inf64}) == inf64);
static_assert(sum_of({one64, one64}) == numerics::binary64::two);
static_assert(sum_of({0x7FF8000000000000u}) == nan64);  // a lone NaN passes no addition
static_assert(numerics::norm_of(inf64) == inf64 && numerics::norm_of(inf64 + 1) == nan64);
static_assert(numerics::clip_factor(nan64, one64) == numerics::binary32::nan);
static_assert(numerics::clip_factor(inf64, inf64) == numerics::binary32::nan);
static_assert(numerics::clip_factor(inf64, one64) == 0);
static_assert(numerics::clip_factor(0, inf64) == numerics::binary32::one);
// The last bucket of the histogram is that of Inf and NaN.
static_assert(numerics::exponent_bucket(0xFFFFFFFFu) == numerics::exponent_buckets - 1);
static_assert(numerics::square(0xFFFFFFFFu) == nan64 && numerics::square(0xFF800000u) == inf64);
static_assert(at_compile_time().norm == 2.0 / 65536 && at_compile_time().exponent == 16);

}  // namespace
}  // namespace samebits
