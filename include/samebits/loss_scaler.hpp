// The loss scaler: what training code calls between the backward pass and the optimizer.
//
//   samebits::loss_scaler scaler;  // 2^16, then as the gradients allow
//   for (const batch& b : batches) {
//     const float loss = model.forward(b);
//     model.backward(scaler.scale(loss));        // fp16 gradients of the scaled loss
//     scaler.unscale(model.gradients());         // in place; counts what is not finite
//     scaler.step([&] { optimizer.step(); });    // not called where something was
//     scaler.update();
//   }
//   write(checkpoint, scaler.save());
//
// For accumulation, scale() and the backward pass are repeated before unscale(): the scale changes
// in update() alone. Optimizers that share a scaler are told apart by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "numerics/loss_scale/loss_scale.hpp"
#include "numerics/loss_scale/loss_scale_compat.hpp"
#include "samebits/communicator.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/error.hpp"
#include "samebits/tensor_list.hpp"
#include "samebits/view.hpp"

namespace samebits {

using scaling_settings = std::variant<native_scaling, torch_scaling, apex_scaling, apex_amp_scaling,
                                      megatron_scaling, deepspeed_scaling>;
using scaling_state = std::variant<native_state, torch_state, apex_state, apex_amp_state,
                                   megatron_state, deepspeed_state>;

/// One step of training under a policy: whether it may be applied, and in `state` what the next one
/// begins with. Pure integer arithmetic, on the host, in kernels and at compile time; settings and
/// state must be valid (check_settings).
template <class Settings, class State>
SAMEBITS_HD constexpr step_decision advance(const Settings& settings, State& state,
                                            const step_observation& seen) {
  return numerics::advance(settings, state, seen);
}

/// The state before the first step.
template <class Settings>
SAMEBITS_HD constexpr auto initial_state(const Settings& settings) {
  return numerics::initial_state(settings);
}

/// The scale in force: what the loss of the coming step is multiplied by.
template <class State>
SAMEBITS_HD constexpr double scale_of(const State& state) {
  return detail::number_of(numerics::scale_bits(state));
}

/// The settings a policy starts from: the library's own defaults.
scaling_settings default_settings(scaling_policy policy);
scaling_policy policy_of(const scaling_settings& settings);

/// Throws invalid_argument naming the setting that a policy cannot work with, as the library's own
/// constructor would; NaN, negative and infinite numbers besides.
void check_settings(const scaling_settings& settings);

/// Sets one setting, by its name and as text: numbers (decimal or hexadecimal), true and false, or
/// the name of an enumerator. Throws invalid_argument naming those there are.
void set_option(scaling_settings& settings, std::string_view name, std::string_view text);

/// A number of another library's saved state, under that library's key.
struct state_entry {
  std::string key;
  double value = 0;
  friend bool operator==(const state_entry&, const state_entry&) = default;
};

/// What all ranks saw of a step together, from what each saw of its share. Waits for the stream and
/// the other ranks. The result is the same on every rank.
/// One all_reduce_max of 32 bytes; a NaN on any rank is never dropped. A communicator on device
/// memory is handed a copy there, and waited for; throws unsupported where no CUDA backend can run.
/// Without waiting: device_loss_scaler::agree.
rank_observation agree(communicator& ranks, const rank_observation& mine);

/// A loss scale that follows the gradients.
///
/// Between two update() calls, each optimizer goes unscale() or observe(), then step(); anything
/// else throws call_order_error, which names the optimizer and the call that is missing or came
/// twice, and changes nothing. Not thread-safe; distinct scalers are independent.
class loss_scaler {
 public:
  /// Throws what check_settings throws.
  explicit loss_scaler(const scaling_settings& settings = native_scaling{});

  /// RN(loss * scale) in binary32. A loss that is not finite is remembered until update(): it
  /// explains the gradients, and the native policy does not blame the scale. Call it for each loss.
  float scale(float loss);

  /// Unscales gradients in place by the scale that scale() used, and remembers whether the
  /// optimizer may step. Waits for the stream of gradients in device memory. Throws what the free
  /// function throws. After an exception that leaves open what was written (incomplete_write,
  /// cuda_error), some gradients may be unscaled already: the scaler then refuses this optimizer's
  /// calls and update() until discard() is called.
  unscale_report unscale(const tensor_list& gradients, std::string_view optimizer = {},
                         const executor& where = {});

  /// Says that the optimizer's gradients were thrown away, as they must be after an unscale() that
  /// failed while it wrote. unscale() or observe() may then be called with gradients computed
  /// again. Throws call_order_error after an unscale(), observe() or step() that did not fail.
  void discard(std::string_view optimizer = {});

  /// In place of unscale(), for callers who unscale themselves: what they saw of the gradients.
  void observe(const step_observation& seen, std::string_view optimizer = {});

  /// For gradients or losses that are spread over ranks, between unscale() or observe() and step():
  /// from here on the scalers of all ranks have seen the same, losses included, and take the same
  /// decisions. Every rank calls it, and for each of its optimizers.
  ///
  /// Throws rank_error, on every rank, where the ranks' scalers have different settings or states,
  /// as after a resume from unequal checkpoints; and what the free function throws.
  rank_observation agree(communicator& ranks, std::string_view optimizer = {});

  /// Calls run(), unless this optimizer's gradients were not finite; returns whether it did. An
  /// exception of run() passes through, and step() may then be called again.
  template <std::invocable Run>
  bool step(Run&& run, std::string_view optimizer = {}) {
    const bool apply = begin_step(optimizer);
    if (apply) std::invoke(std::forward<Run>(run));
    end_step(optimizer, apply);
    return apply;
  }

  /// The same with unscale() before it, where that has not been called.
  template <std::invocable Run>
  bool step(const tensor_list& gradients, Run&& run, std::string_view optimizer = {}) {
    if (!unscaled(optimizer)) unscale(gradients, optimizer);
    return step(std::forward<Run>(run), optimizer);
  }

  /// Ends the iteration: the policy sees what all optimizers saw together, and sets the next scale.
  /// Throws scale_exhausted where it wants the run to end; the scaler is then ready all the same.
  step_decision update();

  /// The scale in force.
  [[nodiscard]] double get_scale() const;
  /// RN(1 / scale) in binary32.
  [[nodiscard]] float inverse_scale() const;

  [[nodiscard]] const scaling_settings& settings() const { return settings_; }
  [[nodiscard]] const scaling_state& state() const { return state_; }
  /// update() calls so far, and how many of an optimizer's steps were applied.
  [[nodiscard]] std::uint64_t updates() const { return updates_; }
  [[nodiscard]] std::uint64_t applied_steps(std::string_view optimizer = {}) const;

  /// Settings, state and counts as text, for a checkpoint: load() continues with the bits of no
  /// interruption. Throws call_order_error between scale(), unscale() and update().
  [[nodiscard]] std::string save() const;
  /// Throws invalid_argument, with the line, for text that save() did not write, versions that are
  /// not known, and settings and states that no scaler can have.
  static loss_scaler load(std::string_view text);

  /// Continues from another library's state_dict (docs/loss_scaling.md lists the keys). Entries
  /// that are settings replace this scaler's. A scaler of the library's own policy continues with
  /// its bits; a native one takes the power of two at or below the scale, within its bounds.
  /// Throws invalid_argument naming a key that is missing, unknown or out of range, and for
  /// policies that neither are this one's nor can be taken over by it.
  void import_state(scaling_policy from, std::span<const state_entry> entries);
  /// The state_dict of that library: of this scaler's own policy, or, from a native one, of torch,
  /// apex, megatron or deepspeed with the present scale, factors of two and no strikes.
  [[nodiscard]] std::vector<state_entry> export_state(scaling_policy to) const;

 private:
  enum class stage : std::uint8_t { ready, interrupted, unscaled, stepped };
  struct record {
    stage at = stage::ready;
    bool agreed = false;  ///< since the last update()
    step_observation seen = {};
    std::int64_t first_bad = -1;  ///< in the list that unscale() had
    std::uint64_t applied = 0;
  };

  [[nodiscard]] bool unscaled(std::string_view optimizer) const;
  record& begin_unscale(std::string_view optimizer, std::string_view call);
  bool begin_step(std::string_view optimizer);
  void end_step(std::string_view optimizer, bool applied);
  [[nodiscard]] step_cause cause_for(const step_observation& seen) const;
  [[nodiscard]] step_observation merged() const;
  [[nodiscard]] bool between_updates() const;
  void check_agreement() const;
  void check_uninterrupted(std::string_view call) const;
  [[nodiscard]] std::string text_of_state() const;

  scaling_settings settings_;
  scaling_state state_;
  std::map<std::string, record, std::less<>> optimizers_;
  std::uint64_t updates_ = 0;
  bool loss_nonfinite_ = false;
  bool loss_agreed_ = false;  ///< no scale() since the last agree()
};

}  // namespace samebits
