// Laws of the native loss-scaling policy over random settings, states and traces.
//
//   loss_scale_laws TRACES [SEED]
//
// Every trace runs through disorder, then through one of three orders, each with a bound that
// follows from the settings: a fixed edge without amax, a fixed largest gradient with amax, and
// accidents that have nothing to do with the scale. The exit status is 1 if a law is broken and 2
// for a bad command line.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>

#include "exhaustive/sweep_program.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits {
namespace {

constexpr std::int32_t fp16_top = 15;  // floor(log2(65504))

/// A law that does not hold.
struct broken {
  const char* law;
};
void hold(bool ok, const char* law) {
  if (!ok) throw broken{law};
}

class trace {
 public:
  explicit trace(std::uint64_t seed) : engine_(seed), settings_(random_settings()) {
    check_settings(settings_);
    state_ = initial_state(settings_);
  }

  void run() {
    const int disorder = static_cast<int>(below(300));
    for (int step = 0; step < disorder; ++step) advance_by(anything());
    switch (below(3)) {
      case 0: fixed_edge(); break;
      case 1: fixed_amax(); break;
      default: accidents(); break;
    }
  }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  std::uint32_t count(std::uint32_t minimum, std::uint32_t maximum) {
    return minimum + static_cast<std::uint32_t>(below(maximum - minimum + 1));
  }
  std::int32_t level(std::int32_t minimum, std::int32_t maximum) {
    return minimum +
           static_cast<std::int32_t>(below(static_cast<std::uint64_t>(maximum - minimum + 1)));
  }

  /// Small intervals, so that a few hundred steps see everything happen.
  native_scaling random_settings() {
    native_scaling s;
    s.min_exponent = level(-126, 30);
    s.max_exponent = std::min(126, s.min_exponent + level(0, 40));
    s.init_exponent = level(s.min_exponent, s.max_exponent);
    s.growth_interval = count(1, 20);
    s.growth_interval_max = s.growth_interval + count(0, 30);
    s.recovery_interval = count(1, 10);
    s.proof = count(1, 20);
    s.probe_window = count(1, 6);
    s.hysteresis = count(1, 4);
    s.forgive_after = count(0, 12);
    s.isolated_cost = count(0, 12);
    s.headroom_bits = static_cast<std::int32_t>(count(0, 3));
    s.headroom_window = count(1, 12);
    s.growth_headroom = below(2) == 0 ? headroom::off : headroom::amax;
    s.on_loss = below(2) == 0 ? loss_fault::hold : loss_fault::back_off;
    return s;
  }

  step_observation anything() {
    step_observation seen;
    const std::uint64_t kind = below(8);
    if (kind < 2) seen.nonfinite = true;
    if (kind == 2) seen.amax = static_cast<std::uint32_t>(engine_()) & 0x7FFFFFFFu;
    if (kind == 3) seen.amax = count(0x33800000u, 0x477FE000u);  // 2^-24 .. 65504
    seen.loss_nonfinite = below(6) == 0;
    seen.unscaled_nonfinite = below(30) == 0;
    return seen;
  }

  step_decision advance_by(const step_observation& seen) {
    const native_state before = state_;
    const step_decision decision = advance(settings_, state_, seen);
    ++steps_;
    hold(state_.exponent >= settings_.min_exponent && state_.exponent <= settings_.max_exponent,
         "the exponent is within its bounds");
    hold(state_.reference >= settings_.min_exponent && state_.reference <= settings_.max_exponent,
         "the reference is within the same bounds");
    hold(std::abs(state_.exponent - before.exponent) <= 1, "the scale moves by one at a time");
    hold(state_.interval >= settings_.growth_interval &&
             state_.interval <= settings_.growth_interval_max,
         "the interval is within its bounds");
    hold(state_.probe_age < static_cast<std::int32_t>(settings_.probe_window),
         "a growth is on trial for no longer than its window");
    hold(decision.apply == (decision.cause == step_cause::none), "every skipped step has a cause");
    hold(!(state_.exponent > before.exponent) || decision.apply, "only a good step raises");
    hold(!(state_.exponent < before.exponent) || !decision.apply, "only a skipped step lowers");
    if (decision.cause == step_cause::unscaled ||
        (decision.cause == step_cause::loss && settings_.on_loss == loss_fault::hold)) {
      native_state same = state_;
      same.skipped_run = before.skipped_run;
      hold(same == before, "what the scale did not cause leaves it and its counters alone");
    }
    return decision;
  }

  /// Steps in which every level climbs, whatever was before.
  [[nodiscard]] std::uint32_t steps_of_a_level() const {
    return std::max({settings_.growth_interval_max, settings_.recovery_interval,
                     settings_.probe_window}) +
           1;
  }
  [[nodiscard]] std::uint32_t levels() const {
    return static_cast<std::uint32_t>(settings_.max_exponent - settings_.min_exponent) + 1;
  }

  /// Bad exactly where the scale is above an edge: the highest level below it is reached, and left
  /// for single steps only.
  void fixed_edge() {
    const std::int32_t edge = level(settings_.min_exponent, settings_.max_exponent);
    // Either without amax, or with one that shows nothing of the edge.
    state_.peak = state_.peak_before = native_state::no_peak;
    const std::uint32_t amax = below(2) == 0 ? amax_unknown : 0;
    const auto step = [&] {
      const bool over = state_.exponent > edge;
      return advance_by({.nonfinite = over, .amax = over ? amax_unknown : amax});
    };
    const std::uint32_t fall = 1 + settings_.hysteresis + levels();
    for (std::uint32_t i = 0; i < fall && state_.exponent > edge; ++i) step();
    hold(state_.exponent <= edge, "the scale falls to the edge in as many steps as it is above it");
    const std::uint32_t climb = levels() * steps_of_a_level();
    for (std::uint32_t i = 0; i < climb && state_.exponent < edge; ++i) {
      hold(step().apply, "nothing is skipped below the edge");
    }
    hold(state_.exponent == edge, "the scale climbs to the edge");
    bool above = false;
    std::uint32_t skips = 0;
    for (std::uint32_t i = 0; i < 4 * settings_.growth_interval_max; ++i) {
      const bool skipped = !step().apply;
      if (skipped) ++skips;
      hold(skipped == above, "only the step after a growth is skipped at the edge");
      above = state_.exponent > edge;
      hold(above ? state_.exponent == edge + 1 : state_.exponent == edge, "the edge is kept");
    }
    hold(skips <= 2 + 4 * settings_.growth_interval_max / settings_.growth_interval,
         "growth is tried once in an interval");
  }

  /// The largest unscaled gradient is 2^binade in every step: the scale ends where headroom_bits
  /// are left, and nothing overflows on the way up.
  void fixed_amax() {
    settings_.growth_headroom = headroom::amax;
    // Finite at the lowest level, and in binary32 once unscaled.
    const std::int32_t highest = std::min(126, fp16_top - settings_.min_exponent);
    const std::int32_t binade = level(highest - 30, highest);
    const auto step = [&] {
      const std::int32_t scaled = binade + state_.exponent;
      const std::uint32_t amax =
          scaled > fp16_top ? 0x7F800000u : numerics::power_of_two(std::max(scaled, -24));
      return advance_by({.amax = amax});
    };
    const std::uint32_t fall = 1 + settings_.hysteresis + levels();
    for (std::uint32_t i = 0; i < fall && binade + state_.exponent > fp16_top; ++i) step();
    const std::uint32_t forget = 2 * settings_.headroom_window + 2;
    const std::uint32_t climb = forget + levels() * steps_of_a_level();
    for (std::uint32_t i = 0; i < climb; ++i) {
      hold(step().apply, "known gradients never overflow by growth");
    }
    const std::int32_t target = std::clamp(fp16_top - settings_.headroom_bits - binade,
                                           settings_.min_exponent, settings_.max_exponent);
    // Where the scaled gradient would be below fp16's smallest, it is taken for that.
    if (binade + target >= -24) {
      hold(state_.exponent >= target, "the scale climbs until the headroom is used");
      hold(binade + state_.exponent <= fp16_top, "and not into the edge");
    }
  }

  /// Bad steps that are never closer than forgive_after: only a growth on trial is taken back.
  void accidents() {
    if (settings_.hysteresis < 2) return;
    state_.strikes = 0;
    for (int accident = 0; accident < 20; ++accident) {
      const std::uint32_t calm = settings_.forgive_after + count(1, 40);
      for (std::uint32_t i = 0; i < calm; ++i) advance_by({});
      const native_state before = state_;
      advance_by({.nonfinite = true});
      hold(before.probe_age >= 0 || state_.exponent == before.exponent,
           "an accident does not lower a level that is not on trial");
    }
  }

  std::mt19937_64 engine_;
  native_scaling settings_;
  native_state state_;
  std::uint64_t steps_ = 0;
};

std::optional<bool> agrees(const support::command_line& words) {
  if (words.size() != 1 && words.size() != 2) return std::nullopt;
  const std::uint64_t traces = words.number(0), seed = words.number(1);
  std::uint64_t steps = 0;
  for (std::uint64_t i = 0; i < traces; ++i) {
    trace t(seed + i);
    try {
      t.run();
    } catch (const broken& b) {
      std::printf("broken after %llu steps: %s\nrepeat with: loss_scale_laws 1 %llu\n",
                  static_cast<unsigned long long>(t.steps()), b.law,
                  static_cast<unsigned long long>(seed + i));
      return false;
    }
    steps += t.steps();
  }
  return support::all_agree("native: " + std::to_string(traces) + " traces by every law",
                            {steps, 0});
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(argc, argv, "loss_scale_laws TRACES [SEED]",
                                        samebits::agrees);
}
