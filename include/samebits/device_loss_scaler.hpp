// The loss scaler of a GPU: scale, decision and report of every step stay there, and no step waits
// for the host. For programs that link samebits::cuda.
//
//   samebits::device_loss_scaler scaler(gradients, {}, {.max_norm = 1.0});  // a list on the GPU
//   // captured into a graph once, replayed for every step:
//   backward<<<..., stream>>>(..., scaler.scale());      // multiplies the loss by *scale
//   scaler.step(stream);                                 // three launches
//   optimizer<<<..., stream>>>(..., scaler.decision());  // if ->applied, uses grad * ->grad_mul
//   // on the host, whenever it likes:
//   while (const auto r = scaler.poll()) log(*r);
//
// The policies are those of samebits/loss_scaler.hpp, step for step. Bits are those of inspect(),
// clip_factor() and loss_scaler on the host.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "samebits/communicator.hpp"
#include "samebits/core/step_report.hpp"
#include "samebits/distributed.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits {

struct device_scaler_options {
  /// Of the unscaled gradients together: grad_mul brings them down to it (clip_factor in
  /// samebits/tensor_list.hpp). >= 0; infinite: gradients are not clipped.
  double max_norm = std::numeric_limits<double>::infinity();
  /// Reports that wait for the host before the oldest is overwritten; >= 1.
  std::uint32_t reports = 256;
  /// cuda-native or cuda-emulated; empty: the default for device memory.
  std::string_view backend = {};
  /// Gradients that are spread over ranks: where their elements lie. Empty: all of them are here,
  /// and over several ranks every one has the same.
  std::optional<shard_layout> shards = {};
};

/// What a device_loss_scaler keeps from step to step.
struct device_scaler_state {
  scaling_state policy = native_state{};
  std::uint64_t steps = 0;          ///< decided so far
  std::uint64_t applied_steps = 0;  ///< of them
};

/// What another device_loss_scaler continues from.
struct device_scaler_checkpoint {
  scaling_settings settings = native_scaling{};
  device_scaler_state state = {};
};

/// A checkpoint as text, with settings and state by their names and numbers by their bits. Needs no
/// GPU. Throws invalid_argument for a state that does not belong to the settings.
std::string save(const device_scaler_checkpoint& checkpoint);
/// Throws invalid_argument, with the line, for text that save() did not write, versions that are
/// not known, and settings and states that no scaler can have.
device_scaler_checkpoint load_device_scaler(std::string_view text);

/// A loss scaler in device memory, for one list of gradients.
///
/// inspect(), agree(), decide(), step() and apply() enqueue on a stream (cudaStream_t) and return:
/// they do not wait, do not allocate and can be captured into a CUDA graph (those over ranks where
/// the communicator can), whose replays give the bits of the same calls made one by one. Calls on
/// different streams must be ordered by the caller. It keeps the list of its gradients, whose
/// tensors must stay where they are; a list that apply() is captured with must live as long as the
/// graph, and no list may be destroyed during a capture. Neither copied nor moved: graphs hold
/// addresses of its memory.
class device_loss_scaler {
 public:
  /// Begins with the policy's initial state. Throws what check_settings throws, invalid_argument
  /// for options out of range and a list that is not of fp32, fp16 and bf16 tensors in device
  /// memory, unsupported without a GPU, and cuda_error.
  explicit device_loss_scaler(tensor_list gradients,
                              const scaling_settings& settings = native_scaling{},
                              const device_scaler_options& options = {});
  /// The same, to go on from a state: with the bits of no interruption. Throws invalid_argument,
  /// too, for the state of another policy.
  device_loss_scaler(tensor_list gradients, const scaling_settings& settings,
                     const device_scaler_state& from, const device_scaler_options& options = {});
  ~device_loss_scaler();
  device_loss_scaler(const device_loss_scaler&) = delete;
  device_loss_scaler& operator=(const device_loss_scaler&) = delete;

  /// The scale in force, RN into binary32, in device memory: what the loss is multiplied by.
  [[nodiscard]] const float* scale() const;
  /// Looks at losses, before they are scaled: fp32, in device memory. One that is not finite is
  /// remembered until decide(): it explains the gradients, and the native policy does not blame the
  /// scale. One launch.
  void observe_losses(const float* losses, std::int64_t count, void* stream);
  /// Reads all gradients once. Two launches, of sharded gradients one; one more where tensors are
  /// not dense and aligned to 16 bytes.
  void inspect(void* stream);
  /// For gradients or losses that are spread over ranks, between inspect() and decide(): makes what
  /// all ranks saw of what this one did, losses included, as loss_scaler::agree does, for the next
  /// decide(). One launch and one all_reduce_max of 32 bytes, on ranks.stream(); the host does not
  /// wait. Every rank calls it.
  ///
  /// Where the ranks' scalers have different settings or states, every rank skips the step and
  /// reports stop and step_cause::ranks_differ; the policy's state stays as it is. The same where
  /// max_norm is finite and their norms differ: clipping needs gradients that are the same on every
  /// rank, as reduce_gradients leaves them, or options.shards. Without either a report's norm is of
  /// the rank's own gradients.
  ///
  /// With options.shards every rank decides by the norm of all shards together, with the bits of
  /// sum_shards() and of one rank that holds all of the gradients. One launch and, in place of the
  /// maximum, one all_gather of shard_layout::message_bytes(). Ranks that use different layouts are
  /// ranks that differ.
  ///
  /// Throws invalid_argument unless the communicator works on device memory and is the rank that
  /// options.shards were laid out for, cuda_error, and what the communicator throws.
  void agree(communicator& ranks);
  /// Decides the step from what inspect() saw, and after agree() from what all ranks saw; sets the
  /// next scale and leaves a report. One launch. Throws call_order_error for sharded gradients
  /// without agree().
  void decide(void* stream);
  /// inspect() and decide(). Throws call_order_error for sharded gradients.
  void step(void* stream);
  /// inspect(), agree() and decide() on ranks.stream().
  void step(communicator& ranks);
  /// What was decided last, in device memory.
  [[nodiscard]] const step_report* decision() const;
  /// Multiplies every tensor of a list by grad_mul, unless the step is skipped. One launch. Throws
  /// as scale() of samebits/tensor_list.hpp.
  void apply(const tensor_list& tensors, void* stream);

  /// The next report that has arrived, in order. Never waits, touches no stream.
  std::optional<step_report> poll();
  /// Reports that were overwritten before they were polled.
  [[nodiscard]] std::uint64_t lost() const;

  /// The state once everything on the stream is done. Waits for the stream.
  [[nodiscard]] device_scaler_state state(void* stream) const;
  /// Settings and state as text, once everything on the stream is done. Waits for the stream.
  [[nodiscard]] std::string save(void* stream) const;
  [[nodiscard]] const scaling_settings& settings() const;
  [[nodiscard]] const tensor_list& gradients() const;

 private:
  struct memory;
  std::unique_ptr<memory> memory_;
};

}  // namespace samebits
