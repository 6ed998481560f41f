// Device loss scaler: scale, decision and report of every step stay on the GPU, and no step waits
// for the host. For programs that link samebits::cuda.
//
//   samebits::device_loss_scaler scaler(gradients, {}, {.max_norm = 1.0});  // a list on the GPU
//   // captured into a graph once, replayed for every step:
//   backward<<<..., stream>>>(..., scaler.scale());      // multiplies the loss by *scale
//   scaler.step(stream);                                 // three launches
//   optimizer<<<..., stream>>>(..., scaler.decision());  // if ->applied, uses grad * ->grad_mul
//   // on the host, at any time:
//   while (const auto r = scaler.poll()) log(*r);
//
// The policies are those of samebits/loss_scaler.hpp, step for step. The bits are those of inspect(),
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

/// Options of a device_loss_scaler.
struct device_scaler_options {
  /// Maximum norm of all unscaled gradients together: grad_mul brings the norm down to max_norm
  /// (clip_factor in samebits/tensor_list.hpp). >= 0; infinite: gradients are not clipped.
  double max_norm = std::numeric_limits<double>::infinity();
  /// Number of reports kept for the host before the oldest is overwritten; >= 1.
  std::uint32_t reports = 256;
  /// Name of the backend: cuda-native or cuda-emulated. Empty: the default for device memory.
  std::string_view backend = {};
  /// Layout of gradients whose elements are spread over ranks. Empty: this rank holds whole
  /// gradients, and with several ranks every rank holds the same gradients.
  std::optional<shard_layout> shards = {};
};

/// A loss scaler in device memory, for one list of gradients. It continues from a loss_scaler on the
/// host, and returns one: for checkpoints, and for another list, device or number of ranks.
///
/// The scaler keeps the list of its gradients; their tensors must stay where they are. The scaler
/// is neither copied nor moved, because graphs hold addresses of its memory.
///
/// @note inspect(), agree(), decide(), step() and apply() enqueue on a stream (cudaStream_t) and
///   return. They do not wait and do not allocate. The caller orders calls on different streams.
/// @note These calls can be captured into a CUDA graph; calls over ranks only if the communicator
///   can be captured. Replays give the bits of the same calls made one by one. A list that apply()
///   is captured with must live as long as the graph. No list may be destroyed during a capture.
class device_loss_scaler {
 public:
  /// Constructs a scaler with the policy's initial state.
  ///
  /// @param gradients  tensors in fp32, fp16 and bf16, device memory
  /// @param settings  policy and its settings
  /// @param options  clipping, reports, backend, shards
  /// @throws as check_settings() does.
  /// @throws invalid_argument if an option is out of range, or if `gradients` is not a list of
  ///   fp32, fp16 and bf16 tensors in device memory.
  /// @throws unsupported without a GPU.
  /// @throws environment_error if the backend's self-test fails (samebits/self_test.hpp).
  /// @throws cuda_error
  explicit device_loss_scaler(tensor_list gradients,
                              const scaling_settings& settings = native_scaling{},
                              const device_scaler_options& options = {});
  /// Constructs a scaler that continues from a scaler on the host, with the bits of an uninterrupted
  /// run. Its applied steps are those of the unnamed optimizer.
  ///
  /// @throws as the constructor above does.
  device_loss_scaler(tensor_list gradients, const loss_scaler& from,
                     const device_scaler_options& options = {});
  ~device_loss_scaler();
  device_loss_scaler(const device_loss_scaler&) = delete;
  device_loss_scaler& operator=(const device_loss_scaler&) = delete;

  /// Returns the current scale in device memory, RN into binary32: the factor of the loss.
  [[nodiscard]] const float* scale() const;
  /// Reads losses before they are scaled. One launch.
  ///
  /// The scaler remembers a loss that is not finite until decide(): such a loss explains gradients
  /// that are not finite, and the native policy does not blame the scale.
  ///
  /// @param losses  [count] in fp32, device memory
  void observe_losses(const float* losses, std::int64_t count, void* stream);
  /// Reads all gradients once. Two launches; one launch for sharded gradients. One more launch if
  /// tensors are not dense or not aligned to 16 bytes.
  void inspect(void* stream);
  /// Combines this rank's observation, losses included, with those of all ranks; the next decide()
  /// uses the result. Call it on every rank between inspect() and decide() if gradients or losses
  /// are spread over ranks.
  ///
  /// Without options.shards: one launch and one all_reduce_max of 32 bytes. A report's norm is the
  /// norm of this rank's own gradients. If max_norm is finite, clipping needs gradients that are
  /// the same on every rank, as reduce_gradients() leaves them.
  ///
  /// With options.shards: one launch and one all_gather of shard_layout::message_bytes(). Every
  /// rank decides by the norm of all shards together. The norm has the bits of sum_shards(), and of
  /// one rank that holds all gradients.
  ///
  /// Every rank skips the step and reports stop and step_cause::ranks_differ, and the policy's
  /// state stays as it is, if:
  /// - the ranks' scalers have different settings or states;
  /// - without options.shards, max_norm is finite and the ranks' norms differ;
  /// - the ranks use different shard layouts.
  ///
  /// @throws invalid_argument unless the communicator works on device memory, and its rank is the
  ///   one that options.shards was made for.
  /// @throws cuda_error
  /// @throws what the communicator throws.
  /// @note Works on ranks.stream(). The host does not wait.
  void agree(communicator& ranks);
  /// Decides the step and sets the next scale. Uses the result of inspect() or, after agree(), of
  /// all ranks. Leaves a report. One launch.
  ///
  /// @throws call_order_error for sharded gradients without agree().
  void decide(void* stream);
  /// Calls inspect() and decide().
  ///
  /// @throws call_order_error for sharded gradients.
  void step(void* stream);
  /// Calls inspect(), agree() and decide() on ranks.stream().
  void step(communicator& ranks);
  /// Returns the last decision, in device memory.
  [[nodiscard]] const step_report* decision() const;
  /// Multiplies every tensor of a list by grad_mul, unless the step is skipped. One launch.
  ///
  /// @throws as scale() of samebits/tensor_list.hpp does.
  void apply(const tensor_list& tensors, void* stream);

  /// Returns the next report that has arrived, in order. Never waits and touches no stream.
  std::optional<step_report> poll();
  /// Returns the number of reports that were overwritten before they were polled.
  [[nodiscard]] std::uint64_t lost() const;

  /// Returns a scaler on the host that continues from the state after all work on the stream. Waits
  /// for the stream.
  [[nodiscard]] loss_scaler on_host(void* stream) const;
  /// Returns on_host(stream).save(): text that loss_scaler::load() reads.
  [[nodiscard]] std::string save(void* stream) const;
  [[nodiscard]] const scaling_settings& settings() const;
  [[nodiscard]] const tensor_list& gradients() const;

 private:
  struct memory;
  std::unique_ptr<memory> memory_;
};

}  // namespace samebits
