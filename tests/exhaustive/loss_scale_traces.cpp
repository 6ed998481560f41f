// Loss scales of other libraries: random traces through the policies and the oracle's
// transcription.
//
//   loss_scale_traces POLICY TRACES [SEED]
//
// 200 steps a trace; settings and failures are random, numbers with full significands among them.
// Compares after every step the scale's bits, the counters and whether the step was applied. The
// exit status is 1 if any differ and 2 for a bad command line.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <random>
#include <string>

#include "exhaustive/sweep_program.hpp"
#include "oracle/loss_scale.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits {
namespace {

constexpr int steps = 200;

class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  std::int64_t among(std::initializer_list<std::int64_t> values) {
    return std::data(values)[below(values.size())];
  }
  /// 2^e, or with a full significand above it.
  double number(int minimum, int maximum) {
    const int e = minimum + static_cast<int>(below(static_cast<std::uint64_t>(maximum) -
                                                   static_cast<std::uint64_t>(minimum) + 1));
    const double fraction =
        below(2) == 0 ? 0.0 : std::ldexp(static_cast<double>(engine_() >> 12), -52);
    return std::ldexp(1.0 + fraction, e);
  }
  /// In (0, 1).
  double below_one() { return below(3) == 0 ? 0.5 : number(-30, -1); }
  double above_one() {
    const double x = below(3) == 0 ? 2.0 : number(0, 20);
    return x > 1.0 ? x : 1.25;
  }

 private:
  std::mt19937_64 engine_;
};

/// Which gradients of a trace are not finite.
class failures {
 public:
  explicit failures(dice& d)
      : kind_(d.below(5)),
        rate_(static_cast<std::uint64_t>(d.among({1, 10, 50, 200, 500, 900}))),
        period_(1 + static_cast<int>(d.below(60))),
        edge_(d.number(-40, 60)) {}

  bool at(int step, double scale, dice& d) const {
    const bool random = d.below(1000) < rate_;
    switch (kind_) {
      case 0: return random;
      case 1: return step % period_ == 0;
      case 2: return (step / period_) % 2 == 1;
      case 3: return scale > edge_;
      default: return scale > edge_ || random;
    }
  }

 private:
  std::uint64_t kind_;
  std::uint64_t rate_;
  int period_;
  double edge_;
};

// A pair of (settings, oracle) each; agree() compares what is left after a step.

struct torch_pair {
  torch_scaling settings;
  oracle::torch_scaler oracle_scaler;
  explicit torch_pair(dice& d)
      : settings{d.number(-126, 120), d.above_one(), d.below_one(),
                 d.among({0, 1, 2, 5, 20, 100, 199, 200, 2000})},
        oracle_scaler{settings.growth_factor, settings.backoff_factor,
                      static_cast<int>(settings.growth_interval),
                      static_cast<float>(settings.init_scale)} {}
  bool step(bool bad) {
    oracle_scaler.update(bad);
    return true;
  }
  [[nodiscard]] bool agrees(const torch_state& s) const {
    return std::bit_cast<std::uint32_t>(s.scale) ==
               std::bit_cast<std::uint32_t>(oracle_scaler.current_scale) &&
           s.growth_tracker == oracle_scaler.growth_tracker;
  }
};

struct apex_pair {
  apex_scaling settings;
  oracle::apex_scaler oracle_scaler;
  explicit apex_pair(dice& d)
      : settings{d.number(-126, 120), d.above_one(), d.below_one(),
                 d.among({1, 2, 5, 20, 100, 199, 200, 2000}), d.among({0, 1, 2, 3, 7, 50})},
        oracle_scaler{settings.growth_factor,
                      settings.backoff_factor,
                      static_cast<int>(settings.growth_interval),
                      static_cast<int>(settings.hysteresis),
                      static_cast<float>(settings.init_scale),
                      0,
                      static_cast<int>(settings.hysteresis)} {}
  bool step(bool bad) {
    oracle_scaler.update(bad);
    return true;
  }
  [[nodiscard]] bool agrees(const apex_state& s) const {
    return std::bit_cast<std::uint32_t>(s.scale) ==
               std::bit_cast<std::uint32_t>(oracle_scaler.current_scale) &&
           s.growth_tracker == oracle_scaler.growth_tracker &&
           s.hysteresis_tracker == oracle_scaler.hysteresis_tracker;
  }
};

struct apex_amp_pair {
  apex_amp_scaling settings;
  oracle::apex_amp_scaler oracle_scaler;
  explicit apex_amp_pair(dice& d)
      : settings{d.number(-900, 900), d.among({0, 1, 2, 5, 20, 100, 199, 200}),
                 d.below(2) == 0 ? 0.0 : d.number(-950, 20), d.number(10, 1000)},
        oracle_scaler{settings.min_loss_scale, settings.max_loss_scale, settings.scale_window,
                      std::min(settings.max_loss_scale, settings.init_scale)} {}
  bool step(bool bad) {
    oracle_scaler.update(bad);
    return true;
  }
  [[nodiscard]] bool agrees(const apex_amp_state& s) const {
    return std::bit_cast<std::uint64_t>(s.scale) ==
               std::bit_cast<std::uint64_t>(oracle_scaler.loss_scale) &&
           s.unskipped == oracle_scaler.unskipped;
  }
};

struct megatron_pair {
  megatron_scaling settings;
  oracle::megatron_scaler oracle_scaler;
  static megatron_scaling random_settings(dice& d) {
    megatron_scaling s{d.number(-60, 120),
                       d.number(-120, 40),
                       d.above_one(),
                       d.below_one(),
                       d.among({1, 2, 5, 20, 100, 199, 200, 1000}),
                       d.among({1, 2, 3, 7, 50})};
    if (s.min_scale > s.initial_scale) s.min_scale = s.initial_scale;
    return s;
  }
  explicit megatron_pair(dice& d)
      : settings(random_settings(d)),
        oracle_scaler{static_cast<float>(settings.min_scale),
                      static_cast<float>(settings.growth_factor),
                      static_cast<float>(settings.backoff_factor),
                      settings.growth_interval,
                      settings.hysteresis,
                      static_cast<float>(settings.initial_scale),
                      0,
                      settings.hysteresis} {}
  bool step(bool bad) {
    oracle_scaler.update(bad);
    return true;
  }
  [[nodiscard]] bool agrees(const megatron_state& s) const {
    return std::bit_cast<std::uint32_t>(s.scale) ==
               std::bit_cast<std::uint32_t>(oracle_scaler.scale) &&
           s.growth_tracker == oracle_scaler.growth_tracker &&
           s.hysteresis_tracker == oracle_scaler.hysteresis_tracker;
  }
};

struct deepspeed_pair {
  deepspeed_scaling settings;
  oracle::deepspeed_scaler oracle_scaler;
  explicit deepspeed_pair(dice& d)
      : settings{d.number(-900, 900),
                 d.above_one(),
                 d.among({1, 2, 5, 20, 100, 199, 200, 1000}),
                 d.below(4) == 0 ? 0.0 : d.number(-950, 40),
                 d.among({0, 1, 2, 3, 7, 50}),
                 d.below(2) == 0,
                 d.below(4) == 0},
        oracle_scaler{settings.scale_factor,
                      settings.min_scale,
                      settings.scale_window,
                      settings.delayed_shift,
                      settings.consecutive_hysteresis,
                      settings.raise_error_at_min_scale,
                      settings.init_scale,
                      settings.delayed_shift} {}
  bool step(bool bad) { return oracle_scaler.update(bad); }
  [[nodiscard]] bool agrees(const deepspeed_state& s) const {
    return std::bit_cast<std::uint64_t>(s.scale) ==
               std::bit_cast<std::uint64_t>(oracle_scaler.cur_scale) &&
           s.cur_iter == oracle_scaler.cur_iter &&
           s.last_overflow_iter == oracle_scaler.last_overflow_iter &&
           s.cur_hysteresis == oracle_scaler.cur_hysteresis;
  }
};

/// Whether a decision names the change of the scale. (A bad step may end with the scale that it
/// began with and yet have lowered it: apex.amp's window may be over at the same time.)
bool tells_what_happened(const step_decision& decision, double before, double after) {
  if (decision.apply) {
    return decision.change == (after == before ? scale_change::kept : scale_change::grown);
  }
  return after < before ? decision.change == scale_change::backed_off
                        : decision.change != scale_change::grown;
}

/// Whether a trace agrees in every step.
template <class Pair>
bool agrees(dice& d) {
  Pair pair(d);
  check_settings(pair.settings);
  const failures bad(d);
  auto state = initial_state(pair.settings);
  if (!pair.agrees(state)) return false;
  for (int step = 0; step < steps; ++step) {
    const double before = scale_of(state);
    const bool nonfinite = bad.at(step, before, d);
    const step_decision decision = advance(pair.settings, state, {.nonfinite = nonfinite});
    const bool goes_on = pair.step(nonfinite);
    if (!tells_what_happened(decision, before, scale_of(state))) return false;
    if (decision.apply == nonfinite || decision.stop == goes_on || !pair.agrees(state)) {
      return false;
    }
    if (decision.stop) return true;
  }
  return true;
}

template <class Pair>
bool run(const support::command_line& words) {
  const std::uint64_t traces = words.number(1), seed = words.number(2);
  std::uint64_t differing = 0;
  for (std::uint64_t trace = 0; trace < traces; ++trace) {
    dice d(seed + trace);
    if (agrees<Pair>(d)) continue;
    if (differing++ == 0) {
      std::printf("first to differ: loss_scale_traces %s 1 %llu\n", words[0].c_str(),
                  static_cast<unsigned long long>(seed + trace));
    }
  }
  return support::all_agree(words[0] + ", traces of " + std::to_string(steps) + " steps",
                            {traces, differing});
}

std::optional<bool> policy_agrees(const support::command_line& words) {
  if (words.size() != 2 && words.size() != 3) return std::nullopt;
  if (words[0] == "torch") return run<torch_pair>(words);
  if (words[0] == "apex") return run<apex_pair>(words);
  if (words[0] == "apex_amp") return run<apex_amp_pair>(words);
  if (words[0] == "megatron") return run<megatron_pair>(words);
  if (words[0] == "deepspeed") return run<deepspeed_pair>(words);
  return std::nullopt;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(argc, argv, "loss_scale_traces POLICY TRACES [SEED]",
                                        samebits::policy_agrees);
}
