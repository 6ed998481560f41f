// The device loss scaler through the C interface, in libraries without CUDA: every function returns
// SAMEBITS_UNSUPPORTED.
#include "backends/c_api/arguments/guarded.hpp"
#include "samebits/c/device_loss_scaler.h"
#include "samebits/error.hpp"

namespace {

samebits_status refuse() {
  return samebits::c_api::guarded([] {
    throw samebits::unsupported(
        "device_loss_scaler: this library was built without CUDA; build it with "
        "-DSAMEBITS_CUDA=ON");
  });
}

}  // namespace

samebits_status samebits_device_loss_scaler_create(const samebits_tensor_list*, int32_t,
                                                   const samebits_setting*, size_t,
                                                   const samebits_device_scaler_options*,
                                                   samebits_device_loss_scaler**) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_load(const samebits_tensor_list*, const char*,
                                                 const samebits_device_scaler_options*,
                                                 samebits_device_loss_scaler**) {
  return refuse();
}
void samebits_device_loss_scaler_destroy(samebits_device_loss_scaler*) {}
samebits_status samebits_device_loss_scaler_scale(const samebits_device_loss_scaler*,
                                                  const float**) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_decision(const samebits_device_loss_scaler*,
                                                     const samebits_step_report**) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_observe_losses(samebits_device_loss_scaler*,
                                                           const float*, int64_t, void*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_inspect(samebits_device_loss_scaler*, void*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_agree(samebits_device_loss_scaler*,
                                                  const samebits_communicator*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_decide(samebits_device_loss_scaler*, void*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_step(samebits_device_loss_scaler*, void*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_step_on_ranks(samebits_device_loss_scaler*,
                                                          const samebits_communicator*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_apply(samebits_device_loss_scaler*,
                                                  const samebits_tensor_list*, void*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_poll(samebits_device_loss_scaler*,
                                                 samebits_step_report*, int32_t*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_lost(const samebits_device_loss_scaler*, uint64_t*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_state(const samebits_device_loss_scaler*, void*,
                                                  samebits_device_scaler_state*) {
  return refuse();
}
samebits_status samebits_device_loss_scaler_save(const samebits_device_loss_scaler*, void*, char*,
                                                 size_t, size_t*) {
  return refuse();
}
