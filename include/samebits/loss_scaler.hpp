// The loss scaler: training code calls it between the backward pass and the optimizer.
//
//   samebits::loss_scaler scaler;  // starts at 2^16, then follows the gradients
//   for (const batch& b : batches) {
//     const float loss = model.forward(b);
//     model.backward(scaler.scale(loss));        // fp16 gradients of the scaled loss
//     scaler.unscale(model.gradients());         // in place; counts Inf and NaN
//     scaler.step([&] { optimizer.step(); });    // not called if there were any
//     scaler.update();
//   }
//   write(checkpoint, scaler.save());
//
// To accumulate gradients, repeat scale() and the backward pass before unscale(): the scale changes
// only in update(). Optimizers that share a scaler are distinguished by name.
#pragma once

#include <cstdint>
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

/// Advances a policy by one training step.
///
/// Pure integer arithmetic, on the host, in kernels and at compile time.
///
/// @param settings  valid settings (check_settings)
/// @param state  a valid state; replaced by the state for the next step
/// @param seen  observation of the gradients
/// @returns whether the step may be applied, and why
template <class Settings, class State>
SAMEBITS_HD constexpr step_decision advance(const Settings& settings, State& state,
                                            const step_observation& seen) {
  return numerics::advance(settings, state, seen);
}

/// Returns the state before the first step.
template <class Settings>
SAMEBITS_HD constexpr auto initial_state(const Settings& settings) {
  return numerics::initial_state(settings);
}

/// Returns the scale that the loss of the coming step is multiplied by.
template <class State>
SAMEBITS_HD constexpr double scale_of(const State& state) {
  return detail::number_of(numerics::scale_bits(state));
}

/// Returns the default settings of a policy, which are the defaults of its library.
scaling_settings default_settings(scaling_policy policy);
/// Returns the policy that the settings belong to.
scaling_policy policy_of(const scaling_settings& settings);

/// Checks settings as the constructor of the policy's library would.
///
/// @throws invalid_argument, naming the setting, if the policy cannot work with it, or if a number
///   is NaN, negative or infinite.
void check_settings(const scaling_settings& settings);

/// Sets one setting from text.
///
/// @param settings  the settings to change
/// @param name  name of the setting
/// @param text  a number (decimal or hexadecimal), true, false, or the name of an enumerator
/// @throws invalid_argument, listing the allowed names.
void set_option(scaling_settings& settings, std::string_view name, std::string_view text);

/// A number of another library's saved state, with the library's key.
struct state_entry {
  std::string key;
  double value = 0;
  friend bool operator==(const state_entry&, const state_entry&) = default;
};

/// Combines the observations of all ranks of one step. The result is the same on every rank.
///
/// One all_reduce_max of 32 bytes. A NaN on any rank is never dropped.
///
/// @param ranks  communicator; every rank calls agree()
/// @param mine  what this rank observed in its own gradients and losses
/// @returns what all ranks observed together
/// @throws unsupported if the communicator works on device memory and no CUDA backend can run.
/// @note Waits for the stream and the other ranks. A communicator on device memory gets a copy of
///   the words there. device_loss_scaler::agree does not wait.
rank_observation agree(communicator& ranks, const rank_observation& mine);

/// A loss scale that adapts to the gradients.
///
/// Between two update() calls, each optimizer calls unscale() or observe(), then step(). Any other
/// order throws call_order_error, which names the optimizer and the call that is missing or
/// repeated, and changes nothing.
///
/// @note Not thread-safe. Distinct scalers are independent.
class loss_scaler {
 public:
  /// @throws as check_settings() does.
  explicit loss_scaler(const scaling_settings& settings = native_scaling{});

  /// Returns RN(loss * scale) in binary32. Call it for each loss.
  ///
  /// The scaler remembers a loss that is not finite until update(): such a loss explains gradients
  /// that are not finite, and the native policy does not blame the scale.
  float scale(float loss);

  /// Unscales gradients in place by the scale that scale() used, and records whether the optimizer
  /// may step.
  ///
  /// @param gradients  tensors in fp32, fp16 or bf16, host or device memory
  /// @param optimizer  name of the optimizer
  /// @param where  backend, threads and stream
  /// @returns counts, amax and the first bad tensor
  /// @throws call_order_error for calls in the wrong order.
  /// @throws as the free function unscale() does. After incomplete_write or cuda_error some
  ///   gradients may be unscaled already. The scaler then refuses update() and this optimizer's
  ///   calls until discard() is called.
  /// @note Waits for the stream of gradients in device memory.
  unscale_report unscale(const tensor_list& gradients, std::string_view optimizer = {},
                         const executor& where = {});

  /// Tells the scaler that the optimizer's gradients were thrown away, as required after an
  /// unscale() that failed while it wrote. Afterwards call unscale() or observe() with gradients
  /// computed again.
  ///
  /// @throws call_order_error after an unscale(), observe() or step() that did not fail.
  void discard(std::string_view optimizer = {});

  /// Records an observation of the gradients. For callers who unscale themselves: replaces
  /// unscale().
  void observe(const step_observation& seen, std::string_view optimizer = {});

  /// Combines this optimizer's observation, losses included, with those of all ranks. Afterwards
  /// the scalers of all ranks take the same decisions. Call it between unscale() or observe() and
  /// step(), on every rank and for each optimizer, if gradients or losses are spread over ranks.
  ///
  /// @returns what all ranks observed together
  /// @throws rank_error, on every rank, if the ranks' scalers have different settings or states, as
  ///   after a resume from unequal checkpoints.
  /// @throws as the free function agree() does.
  /// @note Waits for the stream and the other ranks.
  rank_observation agree(communicator& ranks, std::string_view optimizer = {});

  /// Calls run(), unless this optimizer's gradients were not finite.
  ///
  /// @returns whether run() was called
  /// @note An exception of run() passes through, and step() may then be called again.
  template <std::invocable Run>
  bool step(Run&& run, std::string_view optimizer = {}) {
    const bool apply = begin_step(optimizer);
    if (apply) std::forward<Run>(run)();
    end_step(optimizer, apply);
    return apply;
  }

  /// Calls unscale(gradients) if this optimizer has not unscaled yet, then step(run).
  template <std::invocable Run>
  bool step(const tensor_list& gradients, Run&& run, std::string_view optimizer = {}) {
    if (!unscaled(optimizer)) unscale(gradients, optimizer);
    return step(std::forward<Run>(run), optimizer);
  }

  /// Ends the iteration: passes the combined observation of all optimizers to the policy, which
  /// sets the next scale.
  ///
  /// @throws scale_exhausted if the policy ends the run. The scaler is ready for the next iteration
  ///   nevertheless.
  step_decision update();

  /// Returns the current scale.
  [[nodiscard]] double get_scale() const;
  /// Returns RN(1 / scale) in binary32.
  [[nodiscard]] float inverse_scale() const;

  [[nodiscard]] const scaling_settings& settings() const { return settings_; }
  [[nodiscard]] const scaling_state& state() const { return state_; }
  /// Returns the number of update() calls so far.
  [[nodiscard]] std::uint64_t updates() const { return updates_; }
  /// Returns the number of applied steps of an optimizer.
  [[nodiscard]] std::uint64_t applied_steps(std::string_view optimizer = {}) const;

  /// Returns settings, state and counts as text for a checkpoint. A scaler restored by load()
  /// continues with the bits of an uninterrupted run.
  ///
  /// @throws call_order_error between scale(), unscale() and update().
  [[nodiscard]] std::string save() const;
  /// Restores a scaler from the text of save().
  ///
  /// @throws invalid_argument, with the line, if save() did not write the text, if the version is
  ///   unknown, or if no scaler can have the settings and state.
  static loss_scaler load(std::string_view text);

  /// Continues from another library's state_dict (docs/loss_scaling.md lists the keys).
  ///
  /// Entries that are settings replace this scaler's settings. A scaler of the library's own policy
  /// continues with the library's bits. A native scaler takes the power of two at or below the
  /// scale, within its bounds.
  ///
  /// @param from  policy of the library; this scaler's policy must be `from` or native
  /// @param entries  keys and values of the state_dict
  /// @throws invalid_argument, naming the key, if a key is missing, unknown or out of range.
  /// @throws invalid_argument if this scaler's policy is neither `from` nor native, or if `from` is
  ///   native: load() reads native states.
  /// @throws call_order_error between unscale() and update().
  void import_state(scaling_policy from, std::span<const state_entry> entries);
  /// Returns the state as a state_dict of another library.
  ///
  /// @param to  this scaler's own policy. A native scaler exports to torch, apex, megatron and
  ///   deepspeed: the present scale, factors of two, and no bad steps counted.
  /// @throws invalid_argument for every other policy.
  [[nodiscard]] std::vector<state_entry> export_state(scaling_policy to) const;

 private:
  enum class stage : std::uint8_t { ready, interrupted, unscaled, stepped };
  struct record {
    stage at = stage::ready;
    bool agreed = false;  ///< since the last update()
    step_observation seen = {};
    std::int64_t first_bad = -1;  ///< position in the list of unscale()
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
  /// Orders names without a std::string for each search; std::less is in a costly header.
  struct by_name {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a < b; }
  };

  std::map<std::string, record, by_name> optimizers_;
  std::uint64_t updates_ = 0;
  bool loss_nonfinite_ = false;
  bool loss_agreed_ = false;  ///< no scale() since the last agree()
};

}  // namespace samebits
