// The loss scaler on the host: checks the order of calls and combines the observations of all
// optimizers.
#include "samebits/loss_scaler.hpp"

#include <bit>
#include <cmath>
#include <exception>
#include <new>
#include <string>
#include <variant>

#include "backends/dispatch/refuse.hpp"
#include "backends/ranks/ranks.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/loss_scale/agreement.hpp"

namespace samebits {
namespace {

/// A part of messages: "" or " of optimizer 'name'".
struct of_optimizer {
  std::string_view optimizer;
};
void append_text(std::string& text, const of_optimizer& part) {
  if (!part.optimizer.empty()) text += detail::cat(" of optimizer '", part.optimizer, "'");
}

template <class... Parts>
void require_order(bool is_right, const Parts&... message) {
  require<call_order_error>(is_right, "loss_scaler: ", message...);
}

/// Refuses a call after an unscale() that failed while writing.
void refuse_interrupted(bool is_interrupted, std::string_view call, std::string_view optimizer) {
  require_order(
      !is_interrupted, call, "(): an unscale() of the gradients", of_optimizer{optimizer},
      " failed, and some of them may be unscaled; compute them again and call discard() first");
}

/// Whether this exception guarantees that the call wrote nothing to tensors in `space`.
bool wrote_nothing(const std::exception& error, memory_space space) {
  const bool refused = dynamic_cast<const invalid_argument*>(&error) != nullptr ||
                       dynamic_cast<const unsupported*>(&error) != nullptr ||
                       dynamic_cast<const environment_error*>(&error) != nullptr;
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return refused || (no_memory && space == memory_space::host);
}

scaling_state state_before_the_first_step(const scaling_settings& settings) {
  return std::visit([](const auto& s) { return scaling_state(numerics::initial_state(s)); },
                    settings);
}

}  // namespace

loss_scaler::loss_scaler(const scaling_settings& settings)
    : settings_((check_settings(settings), settings)),
      state_(state_before_the_first_step(settings)) {}

float loss_scaler::scale(float loss) {
  if (!std::isfinite(loss)) loss_nonfinite_ = true;
  loss_agreed_ = false;
  // Computed in integers: the product does not depend on the rounding mode of this process.
  const std::uint32_t scale = numerics::binary64::narrow(std::bit_cast<std::uint64_t>(get_scale()));
  return std::bit_cast<float>(
      numerics::binary32::multiply(std::bit_cast<std::uint32_t>(loss), scale));
}

bool loss_scaler::unscaled(std::string_view optimizer) const {
  const auto found = optimizers_.find(optimizer);
  return found != optimizers_.end() && found->second.at == stage::unscaled;
}

loss_scaler::record& loss_scaler::begin_unscale(std::string_view optimizer, std::string_view call) {
  refuse_if(optimizer.find('\n') != std::string_view::npos, "optimizer: its name must be one line");
  record& r = optimizers_.try_emplace(std::string(optimizer)).first->second;
  refuse_interrupted(r.at == stage::interrupted, call, optimizer);
  require_order(
      r.at != stage::unscaled, call, "(): the gradients", of_optimizer{optimizer},
      " have been unscaled or observed since the last update() already; a second time would "
      "divide them by the scale again");
  require_order(r.at != stage::stepped, call, "(): called after step()", of_optimizer{optimizer},
                "; call update() first");
  return r;
}

void loss_scaler::discard(std::string_view optimizer) {
  const auto found = optimizers_.find(optimizer);
  if (found == optimizers_.end() || found->second.at == stage::ready) return;
  require_order(found->second.at == stage::interrupted, "discard(): the gradients",
                of_optimizer{optimizer},
                " have been unscaled or observed; call step() and update()");
  found->second.at = stage::ready;
}

unscale_report loss_scaler::unscale(const tensor_list& gradients, std::string_view optimizer,
                                    const executor& where) {
  record& r = begin_unscale(optimizer, "unscale");
  r.at = stage::interrupted;
  try {
    const unscale_report report = samebits::unscale(gradients, inverse_scale(), where);
    r.seen = {.nonfinite = report.nonfinite != 0,
              .loss_nonfinite = false,
              .unscaled_nonfinite = report.overflowed != 0,
              .amax = report.amax_bits};
    r.first_bad = report.first_bad;
    r.at = stage::unscaled;
    return report;
  } catch (const std::exception& error) {
    if (wrote_nothing(error, gradients.space())) r.at = stage::ready;
    throw;
  }
}

void loss_scaler::observe(const step_observation& seen, std::string_view optimizer) {
  record& r = begin_unscale(optimizer, "observe");
  r.seen = seen;
  r.seen.loss_nonfinite = false;
  r.first_bad = -1;
  loss_nonfinite_ = loss_nonfinite_ || seen.loss_nonfinite;
  r.at = stage::unscaled;
}

rank_observation loss_scaler::agree(communicator& ranks, std::string_view optimizer) {
  check_uninterrupted("agree");
  require_order(
      unscaled(optimizer), "agree(): the gradients", of_optimizer{optimizer},
      " have not been looked at since the last update() or step(); call unscale() or observe() "
      "first");
  record& r = optimizers_.find(optimizer)->second;
  rank_observation mine = {.seen = r.seen, .first_bad = r.first_bad};
  mine.seen.loss_nonfinite = loss_nonfinite_;
  backends::fingerprint state;
  state.add(text_of_state());
  const numerics::agreement_message all = backends::largest_message(ranks, mine, state.folded());
  require<rank_error>(
      numerics::states_agree(all),
      "loss_scaler: agree(): the ranks' scalers differ in settings, state or the number of "
      "updates; start them alike, or load one rank's save() on all of them");
  const rank_observation agreed = numerics::observation_of(all);
  r.seen = agreed.seen;
  r.seen.loss_nonfinite = false;
  r.first_bad = agreed.first_bad;
  r.agreed = true;
  loss_nonfinite_ = agreed.seen.loss_nonfinite;
  loss_agreed_ = true;
  return agreed;
}

void loss_scaler::check_uninterrupted(std::string_view call) const {
  for (const auto& [name, r] : optimizers_) {
    refuse_interrupted(r.at == stage::interrupted, call, name);
  }
}

/// If any observation is agreed between ranks, all observations that update() uses must be.
void loss_scaler::check_agreement() const {
  const std::string* agreed = nullptr;
  const std::string* alone = nullptr;
  for (const auto& [name, r] : optimizers_) {
    if (r.at != stage::ready) (r.agreed ? agreed : alone) = &name;
  }
  if (agreed == nullptr) return;
  if (alone != nullptr) {
    require_order(false, "update(): agree() was called for optimizer '", *agreed, "' but not for '",
                  *alone, "'; the ranks' scales would part");
  }
  require_order(
      loss_agreed_,
      "update(): scale() was called after the last agree(); other ranks do not know of that "
      "loss");
}

step_cause loss_scaler::cause_for(const step_observation& seen) const {
  if (const auto* native = std::get_if<native_scaling>(&settings_)) {
    return numerics::cause_of(*native, std::get<native_state>(state_), seen);
  }
  return numerics::cause_of(seen);
}

bool loss_scaler::begin_step(std::string_view optimizer) {
  const auto found = optimizers_.find(optimizer);
  const stage at = found == optimizers_.end() ? stage::ready : found->second.at;
  require_order(
      at != stage::ready, "step(): the gradients", of_optimizer{optimizer},
      " have not been looked at since the last update(); call unscale() or observe() first, or "
      "hand step() the gradients");
  refuse_interrupted(at == stage::interrupted, "step", optimizer);
  require_order(at != stage::stepped, "step(): called twice", of_optimizer{optimizer},
                " since the last update()");
  return cause_for(found->second.seen) == step_cause::none;
}

void loss_scaler::end_step(std::string_view optimizer, bool applied) {
  record& r = optimizers_.find(optimizer)->second;
  r.at = stage::stepped;
  if (applied) ++r.applied;
}

bool loss_scaler::between_updates() const {
  for (const auto& [name, r] : optimizers_) {
    if (r.at != stage::ready) return false;
  }
  return !loss_nonfinite_;
}

step_observation loss_scaler::merged() const {
  step_observation all;
  bool any = false;
  std::uint32_t amax = 0;
  for (const auto& [name, r] : optimizers_) {
    if (r.at == stage::ready) continue;
    any = true;
    const step_cause cause = cause_for(r.seen);
    all.unscaled_nonfinite = all.unscaled_nonfinite || cause == step_cause::unscaled;
    all.nonfinite = all.nonfinite || (cause != step_cause::none && cause != step_cause::unscaled);
    // The amax is unknown if any optimizer's amax is unknown.
    const bool known = amax != amax_unknown && r.seen.amax != amax_unknown;
    const std::uint32_t magnitude = numerics::binary32::magnitude(r.seen.amax);
    amax = !known ? amax_unknown : amax < magnitude ? magnitude : amax;
  }
  require_order(
      any,
      "update(): no gradients have been looked at since the last one; call unscale(), observe() "
      "or step() with gradients first");
  all.amax = amax;
  all.loss_nonfinite = loss_nonfinite_;
  return all;
}

step_decision loss_scaler::update() {
  check_uninterrupted("update");
  const step_observation seen = merged();
  check_agreement();
  const step_decision decision = std::visit(
      [&](const auto& settings) {
        auto& state = std::get<decltype(numerics::initial_state(settings))>(state_);
        return numerics::advance(settings, state, seen);
      },
      settings_);
  for (auto& [name, r] : optimizers_) {
    r.at = stage::ready;
    r.agreed = false;
  }
  loss_nonfinite_ = false;
  ++updates_;
  refuse_if<scale_exhausted>(decision.stop, "loss_scaler: policy ", policy_of(settings_),
                             " ends the run: ",
                             decision.change == scale_change::at_minimum
                                 ? "the gradients are not finite at the lowest scale"
                                 : "too many steps in a row were skipped");
  return decision;
}

double loss_scaler::get_scale() const {
  return std::visit([](const auto& s) { return scale_of(s); }, state_);
}

float loss_scaler::inverse_scale() const {
  return std::bit_cast<float>(numerics::inverse_scale(std::bit_cast<std::uint64_t>(get_scale())));
}

std::uint64_t loss_scaler::applied_steps(std::string_view optimizer) const {
  const auto found = optimizers_.find(optimizer);
  return found == optimizers_.end() ? 0 : found->second.applied;
}

}  // namespace samebits
