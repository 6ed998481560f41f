// device_loss_scaler::memory, shared by the two files that define the scaler's member functions.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "backends/cuda/common/allocation.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/tensor_list/list.hpp"
#include "backends/cuda/training/scaler_kernels.cuh"
#include "backends/cuda/training/shard_memory.cuh"
#include "backends/dispatch/device_scope.hpp"
#include "backends/loss_scaler/report_ring.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "samebits/device_loss_scaler.hpp"

namespace samebits {
namespace cuda {

/// The state type of a policy's settings.
template <class Settings>
using state_of = decltype(initial_state(std::declval<const std::remove_cvref_t<Settings>&>()));

}  // namespace cuda

/// The list, settings, device memory and report ring of a device_loss_scaler.
struct device_loss_scaler::memory {
  tensor_list list;
  scaling_settings settings;
  double max_norm = 0;
  std::uint32_t fingerprint = 0;  ///< hash of the settings
  bool agreed = false;            ///< agree() was called since the last decide()
  std::uint32_t capacity = 0;
  int device_number = 0;  ///< device of the scaler's memory
  cuda::arithmetic by = cuda::arithmetic::hardware;
  cuda::list_layout shape = cuda::list_layout::any;
  cuda::allocation device, host;
  cuda::inspection_memory inspection = {};
  cuda::scaler_words* words = nullptr;
  std::byte* resident = nullptr;  ///< the policy's resident_scaler, in device memory
  numerics::report_slot* ring = nullptr;
  std::optional<backends::report_reader> reader;
  std::optional<shard_layout> layout;  ///< if gradients are sharded over ranks
  std::optional<cuda::shard_memory> shards;

  /// Makes the scaler's device current until the end of the scope. Throws for a stream of another
  /// device.
  [[nodiscard]] backends::device_scope scope(
      void* stream, backends::completion ends = backends::completion::enqueued) const {
    return backends::device_scope(memory_space::device, device_number, stream, ends);
  }
  /// Sends this rank's message to all ranks: its observation and the partial sums of its shards.
  void agree_on_shards(communicator& ranks);
  /// Enqueues the decision from the messages of all ranks.
  void decide_on_shards(cudaStream_t stream);

  [[nodiscard]] cuda::decision_task task() const {
    return {inspection.tensors, list.size(), words, ring, capacity, max_norm};
  }

  /// Calls f(settings, resident scaler, arithmetic) with the loss-scaling policy's types and the
  /// backend's Arithmetic policy.
  template <class Function>
  void visit(const Function& f) const {
    std::visit(
        [&](const auto& s) {
          using state_type = cuda::state_of<std::remove_cvref_t<decltype(s)>>;
          auto* const at = reinterpret_cast<numerics::resident_scaler<state_type>*>(resident);
          cuda::with_arithmetic(by, [&](auto policy) { f(s, at, policy); });
        },
        settings);
  }
};

}  // namespace samebits
