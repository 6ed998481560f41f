// The device loss scaler through the C interface, in libraries with CUDA.
#include "samebits/device_loss_scaler.hpp"

#include <optional>
#include <string>
#include <variant>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/handles.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "backends/c_api/ranks/callback_ranks.hpp"
#include "samebits/c/device_loss_scaler.h"

struct samebits_device_loss_scaler {
  samebits::device_loss_scaler scaler;
};

namespace api = samebits::c_api;

namespace {

samebits::device_loss_scaler& scaler_of(samebits_device_loss_scaler* scaler) {
  return api::required(scaler, "scaler").scaler;
}
const samebits::device_loss_scaler& scaler_of(const samebits_device_loss_scaler* scaler) {
  return api::required(scaler, "scaler").scaler;
}

samebits::device_scaler_options options_of(const samebits_device_scaler_options* options) {
  const samebits_device_scaler_options o = api::read(options, "options");
  samebits::device_scaler_options all = {
      .max_norm = o.max_norm, .reports = o.reports, .backend = api::text(o.backend)};
  if (o.shards != nullptr) all.shards = o.shards->layout;
  return all;
}

}  // namespace

samebits_status samebits_device_loss_scaler_create(const samebits_tensor_list* gradients,
                                                   int32_t policy, const samebits_setting* settings,
                                                   size_t count,
                                                   const samebits_device_scaler_options* options,
                                                   samebits_device_loss_scaler** scaler) {
  return api::guarded([&] {
    samebits_device_loss_scaler*& out = api::required(scaler, "scaler");
    out = new samebits_device_loss_scaler{samebits::device_loss_scaler(
        api::list_of(gradients, "gradients"), api::settings_of(policy, settings, count),
        options_of(options))};
  });
}

samebits_status samebits_device_loss_scaler_load(const samebits_tensor_list* gradients,
                                                 const char* text,
                                                 const samebits_device_scaler_options* options,
                                                 samebits_device_loss_scaler** scaler) {
  return api::guarded([&] {
    samebits_device_loss_scaler*& out = api::required(scaler, "scaler");
    const samebits::device_scaler_checkpoint from =
        samebits::load_device_scaler(&api::required(text, "text"));
    out = new samebits_device_loss_scaler{samebits::device_loss_scaler(
        api::list_of(gradients, "gradients"), from.settings, from.state, options_of(options))};
  });
}

void samebits_device_loss_scaler_destroy(samebits_device_loss_scaler* scaler) { delete scaler; }

samebits_status samebits_device_loss_scaler_scale(const samebits_device_loss_scaler* scaler,
                                                  const float** scale) {
  return api::guarded([&] { api::required(scale, "scale") = scaler_of(scaler).scale(); });
}

samebits_status samebits_device_loss_scaler_decision(const samebits_device_loss_scaler* scaler,
                                                     const samebits_step_report** decision) {
  return api::guarded([&] {
    api::required(decision, "decision") =
        reinterpret_cast<const samebits_step_report*>(scaler_of(scaler).decision());
  });
}

samebits_status samebits_device_loss_scaler_observe_losses(samebits_device_loss_scaler* scaler,
                                                           const float* losses, int64_t count,
                                                           void* stream) {
  return api::guarded([&] { scaler_of(scaler).observe_losses(losses, count, stream); });
}

samebits_status samebits_device_loss_scaler_inspect(samebits_device_loss_scaler* scaler,
                                                    void* stream) {
  return api::guarded([&] { scaler_of(scaler).inspect(stream); });
}

samebits_status samebits_device_loss_scaler_agree(samebits_device_loss_scaler* scaler,
                                                  const samebits_communicator* ranks) {
  return api::guarded([&] {
    api::callback_ranks with(ranks);
    scaler_of(scaler).agree(with);
  });
}

samebits_status samebits_device_loss_scaler_decide(samebits_device_loss_scaler* scaler,
                                                   void* stream) {
  return api::guarded([&] { scaler_of(scaler).decide(stream); });
}

samebits_status samebits_device_loss_scaler_step(samebits_device_loss_scaler* scaler,
                                                 void* stream) {
  return api::guarded([&] { scaler_of(scaler).step(stream); });
}

samebits_status samebits_device_loss_scaler_step_on_ranks(samebits_device_loss_scaler* scaler,
                                                          const samebits_communicator* ranks) {
  return api::guarded([&] {
    api::callback_ranks with(ranks);
    scaler_of(scaler).step(with);
  });
}

samebits_status samebits_device_loss_scaler_apply(samebits_device_loss_scaler* scaler,
                                                  const samebits_tensor_list* tensors,
                                                  void* stream) {
  return api::guarded([&] { scaler_of(scaler).apply(api::list_of(tensors, "tensors"), stream); });
}

samebits_status samebits_device_loss_scaler_poll(samebits_device_loss_scaler* scaler,
                                                 samebits_step_report* report, int32_t* arrived) {
  return api::guarded([&] {
    samebits_step_report& out = api::required(report, "report");
    int32_t& found = api::required(arrived, "arrived");
    const std::optional<samebits::step_report> next = scaler_of(scaler).poll();
    found = next ? 1 : 0;
    if (next) out = api::report_of(*next);
  });
}

samebits_status samebits_device_loss_scaler_lost(const samebits_device_loss_scaler* scaler,
                                                 uint64_t* lost) {
  return api::guarded([&] { api::required(lost, "lost") = scaler_of(scaler).lost(); });
}

samebits_status samebits_device_loss_scaler_state(const samebits_device_loss_scaler* scaler,
                                                  void* stream,
                                                  samebits_device_scaler_state* state) {
  return api::guarded([&] {
    samebits_device_scaler_state& out = api::required(state, "state");
    const samebits::device_scaler_state s = scaler_of(scaler).state(stream);
    out = {.steps = s.steps,
           .applied_steps = s.applied_steps,
           .scale = std::visit([](const auto& p) { return samebits::scale_of(p); }, s.policy)};
  });
}

samebits_status samebits_device_loss_scaler_save(const samebits_device_loss_scaler* scaler,
                                                 void* stream, char* buffer, size_t size,
                                                 size_t* length) {
  return api::guarded(
      [&] { api::write_text(scaler_of(scaler).save(stream), buffer, size, length); });
}
