// The host's loss scaler through the C interface.
#include "samebits/loss_scaler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/handles.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "backends/loss_scaler/lines.hpp"
#include "samebits/c/loss_scaler.h"
#include "samebits/error.hpp"

namespace samebits::c_api {

scaling_settings settings_of(std::int32_t policy, const samebits_setting* settings,
                             std::size_t count) {
  check_array(settings, count, "settings");
  scaling_settings all = default_settings(enumerator<scaling_policy>(policy, "policy"));
  for (std::size_t i = 0; i < count; ++i) {
    set_option(all, &required(settings[i].name, "settings[].name"),
               &required(settings[i].value, "settings[].value"));
  }
  return all;
}

}  // namespace samebits::c_api

namespace api = samebits::c_api;

namespace {

samebits::loss_scaler& scaler_of(samebits_loss_scaler* scaler) {
  return api::required(scaler, "scaler").scaler;
}
const samebits::loss_scaler& scaler_of(const samebits_loss_scaler* scaler) {
  return api::required(scaler, "scaler").scaler;
}

samebits::step_observation observation_of(const samebits_step_observation* observation) {
  const samebits_step_observation o =
      api::read(&api::required(observation, "observation"), "observation");
  return {.nonfinite = o.nonfinite != 0,
          .loss_nonfinite = o.loss_nonfinite != 0,
          .unscaled_nonfinite = o.unscaled_nonfinite != 0,
          .amax = o.amax_bits};
}

samebits_step_decision decision_of(const samebits::step_decision& d) {
  return {.apply = d.apply ? 1 : 0,
          .cause = static_cast<int32_t>(d.cause),
          .change = static_cast<int32_t>(d.change),
          .stop = d.stop ? 1 : 0};
}

void call(samebits_step_function run, void* user) {
  if (run == nullptr) return;
  const int32_t status = run(user);
  if (status == 0) return;
  throw api::callback_failed("run: the optimizer returned " + std::to_string(status));
}

std::vector<samebits::state_entry> entries_of(const samebits_state_entry* entries, size_t count) {
  api::check_array(entries, count, "entries");
  std::vector<samebits::state_entry> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const char* key = entries[i].key;
    const char* end = std::find(key, key + sizeof entries[i].key, '\0');
    all.push_back({.key = std::string(key, end), .value = entries[i].value});
  }
  return all;
}

samebits_state_entry entry_of(const samebits::state_entry& from) {
  samebits_state_entry entry = {};
  api::write_text(from.key, entry.key, sizeof entry.key, nullptr);
  entry.value = from.value;
  return entry;
}

}  // namespace

samebits_status samebits_loss_scaler_create(int32_t policy, const samebits_setting* settings,
                                            size_t count, samebits_loss_scaler** scaler) {
  return api::guarded([&] {
    samebits_loss_scaler*& out = api::required(scaler, "scaler");
    out =
        new samebits_loss_scaler{samebits::loss_scaler(api::settings_of(policy, settings, count))};
  });
}

samebits_status samebits_loss_scaler_load(const char* text, samebits_loss_scaler** scaler) {
  return api::guarded([&] {
    samebits_loss_scaler*& out = api::required(scaler, "scaler");
    out = new samebits_loss_scaler{samebits::loss_scaler::load(&api::required(text, "text"))};
  });
}

void samebits_loss_scaler_destroy(samebits_loss_scaler* scaler) { delete scaler; }

samebits_status samebits_loss_scaler_scale(samebits_loss_scaler* scaler, float loss,
                                           float* scaled) {
  return api::guarded([&] {
    float& out = api::required(scaled, "scaled");
    out = scaler_of(scaler).scale(loss);
  });
}

samebits_status samebits_loss_scaler_unscale(samebits_loss_scaler* scaler,
                                             const samebits_tensor_list* gradients,
                                             const char* optimizer, samebits_unscale_report* report,
                                             const samebits_executor* where) {
  return api::guarded([&] {
    api::write(report,
               api::report_of(scaler_of(scaler).unscale(api::list_of(gradients, "gradients"),
                                                        api::text(optimizer), api::where(where))));
  });
}

samebits_status samebits_loss_scaler_discard(samebits_loss_scaler* scaler, const char* optimizer) {
  return api::guarded([&] { scaler_of(scaler).discard(api::text(optimizer)); });
}

samebits_status samebits_loss_scaler_observe(samebits_loss_scaler* scaler,
                                             const samebits_step_observation* observation,
                                             const char* optimizer) {
  return api::guarded(
      [&] { scaler_of(scaler).observe(observation_of(observation), api::text(optimizer)); });
}

samebits_status samebits_loss_scaler_step(samebits_loss_scaler* scaler, const char* optimizer,
                                          samebits_step_function run, void* user,
                                          int32_t* applied) {
  return api::guarded([&] {
    const bool stepped = scaler_of(scaler).step([&] { call(run, user); }, api::text(optimizer));
    api::write(applied, stepped ? 1 : 0);
  });
}

samebits_status samebits_loss_scaler_update(samebits_loss_scaler* scaler,
                                            samebits_step_decision* decision) {
  return api::guarded([&] { api::write(decision, decision_of(scaler_of(scaler).update())); });
}

samebits_status samebits_loss_scaler_policy(const samebits_loss_scaler* scaler, int32_t* policy) {
  return api::guarded([&] {
    api::required(policy, "policy") =
        static_cast<int32_t>(samebits::policy_of(scaler_of(scaler).settings()));
  });
}

samebits_status samebits_loss_scaler_get_scale(const samebits_loss_scaler* scaler, double* scale) {
  return api::guarded([&] { api::required(scale, "scale") = scaler_of(scaler).get_scale(); });
}

samebits_status samebits_loss_scaler_inverse_scale(const samebits_loss_scaler* scaler,
                                                   float* inverse_scale) {
  return api::guarded(
      [&] { api::required(inverse_scale, "inverse_scale") = scaler_of(scaler).inverse_scale(); });
}

samebits_status samebits_loss_scaler_updates(const samebits_loss_scaler* scaler,
                                             uint64_t* updates) {
  return api::guarded([&] { api::required(updates, "updates") = scaler_of(scaler).updates(); });
}

samebits_status samebits_loss_scaler_applied_steps(const samebits_loss_scaler* scaler,
                                                   const char* optimizer, uint64_t* steps) {
  return api::guarded([&] {
    api::required(steps, "steps") = scaler_of(scaler).applied_steps(api::text(optimizer));
  });
}

samebits_status samebits_loss_scaler_save(const samebits_loss_scaler* scaler, char* buffer,
                                          size_t size, size_t* length) {
  return api::guarded([&] { api::write_text(scaler_of(scaler).save(), buffer, size, length); });
}

samebits_status samebits_loss_scaler_describe(const samebits_loss_scaler* scaler, char* buffer,
                                              size_t size, size_t* length) {
  return api::guarded([&] {
    const samebits::loss_scaler& s = scaler_of(scaler);
    api::write_text(samebits::backends::policy_lines("loss_scaler", s.settings(), s.state()),
                    buffer, size, length);
  });
}

samebits_status samebits_loss_scaler_import_state(samebits_loss_scaler* scaler, int32_t from,
                                                  const samebits_state_entry* entries,
                                                  size_t count) {
  return api::guarded([&] {
    const auto policy = api::enumerator<samebits::scaling_policy>(from, "from");
    scaler_of(scaler).import_state(policy, entries_of(entries, count));
  });
}

samebits_status samebits_loss_scaler_export_state(const samebits_loss_scaler* scaler, int32_t to,
                                                  samebits_state_entry* entries, size_t capacity,
                                                  size_t* count) {
  return api::guarded([&] {
    const auto policy = api::enumerator<samebits::scaling_policy>(to, "to");
    const std::vector<samebits::state_entry> all = scaler_of(scaler).export_state(policy);
    api::required(count, "count") = all.size();
    if (entries == nullptr) return;
    if (capacity < all.size()) {
      throw samebits::invalid_argument("capacity: must be at least " + std::to_string(all.size()) +
                                       ", got " + std::to_string(capacity));
    }
    std::transform(all.begin(), all.end(), entries, entry_of);
  });
}
