// Kernels of a loss scaler on a GPU: losses, the message to the other ranks, and the decision.
//
//   losses_kernel    one thread per loss: notes NaN or Inf
//   message_kernel   one block: statistics of all tensors, and this rank's message
//   decide_kernel    one block: statistics of all tensors, the decision and its report
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "backends/cuda/tensor_list/list_total.cuh"
#include "backends/cuda/training/device_report.cuh"
#include "backends/cuda/training/scaler_policy.cuh"
#include "backends/loss_scaler/fields.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/loss_scale/agreement.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "numerics/loss_scale/gradient_report.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::cuda {

/// Device memory that every policy keeps. The policy's state has its own size and lies elsewhere.
struct step_memory {
  step_report decision;
  numerics::scaler_words words;
  numerics::agreement_message agreement;  ///< this rank's message, then the maximum over all ranks
};

/// decision_task: launch parameters of the message and decision kernels.
struct decision_task {
  const tensor_statistics* tensors;  ///< statistics of each tensor
  std::uint64_t count;               ///< tensors
  step_memory* step;
  numerics::report_slot* ring;
  std::uint64_t capacity;  ///< slots of the ring
  double max_norm;
};

/// Whose observation the decision uses.
enum class observer : std::uint8_t { this_rank, all_ranks };

/// What this rank saw: non-finite gradients and losses, the amax and the first bad tensor.
__device__ __forceinline__ rank_observation observation_of(const list_total& total,
                                                           const numerics::scaler_words& words) {
  rank_observation seen;
  seen.seen.nonfinite = total.first_bad >= 0;
  seen.seen.loss_nonfinite = words.bad_loss != 0;
  seen.seen.amax = total.totals.amax;
  seen.first_bad = total.first_bad;
  return seen;
}

/// Adds fields to a hash, FNV-1a over 64-bit words.
struct field_hash {
  std::uint64_t* hash;

  SAMEBITS_INLINE void add(std::uint64_t bits) const {
    *hash = (*hash ^ bits) * 0x00000100000001B3u;
    *hash ^= *hash >> 29;  // spreads high bits to the low half
  }
  template <class T>
  SAMEBITS_INLINE void operator()(const char*, const T& field) const {
    if constexpr (std::is_floating_point_v<T>) {
      add(detail::bits_of(field));
    } else {
      add(static_cast<std::uint64_t>(field));
    }
  }
};

/// Hash of everything that must be equal on all ranks: settings, state, max_norm, and `clipped_by`.
/// The latter is the sum of squares, or the fingerprint of the shard layout.
__device__ inline std::uint32_t state_word(std::uint32_t settings, const scaler_policy& policy,
                                           double max_norm, std::uint64_t clipped_by) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  const field_hash add{&hash};
  add.add(settings);
  policy.visit([&](const auto&, const auto& scaler) {
    backends::for_each_field(scaler.policy, add);
    add.add(scaler.steps);
    add.add(scaler.applied_steps);
  });
  add.add(detail::bits_of(max_norm));
  add.add(clipped_by);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

/// Writes this rank's message to task.step->agreement. One block.
template <class Arithmetic>
__global__ void __launch_bounds__(total_threads)
    message_kernel(const std::uint32_t settings, const __grid_constant__ scaler_policy policy,
                   const decision_task task, const std::int64_t rank) {
  __shared__ total_scratch<Arithmetic> scratch;
  const list_total total = total_of<Arithmetic>(task.tensors, task.count, scratch);
  if (threadIdx.x != 0) return;
  const bool clips = detail::bits_of(task.max_norm) != numerics::binary64::inf;
  task.step->agreement = numerics::message_of(
      observation_of(total, task.step->words), rank,
      state_word(settings, policy, task.max_norm, clips ? total.totals.squares : 0));
}

/// Decides from an observation and a sum of squares (binary64 bits), and writes decision, words and
/// report. One thread calls. alike: the state is equal on all ranks; if not, the step is refused.
__device__ inline void take_step(const scaler_policy& policy, const decision_task& task,
                                 const rank_observation& seen, std::uint64_t squares, bool alike) {
  const norm_clipping clipping = {__longlong_as_double(static_cast<long long>(squares)),
                                  task.max_norm};
  policy.visit([&](const auto& settings, auto& scaler) {
    const step_report report = alike ? numerics::decide(settings, scaler, seen, clipping)
                                     : numerics::refused_step(scaler, seen);
    task.step->decision = report;
    task.step->words = numerics::next_words(scaler, report);
    device::put_report(task.ring, task.capacity, report);
  });
}

/// Decides from this rank's observation or from the message of all ranks. One block.
template <class Arithmetic>
__global__ void __launch_bounds__(total_threads)
    decide_kernel(const __grid_constant__ scaler_policy policy, const decision_task task,
                  const observer who) {
  __shared__ total_scratch<Arithmetic> scratch;
  const list_total total = total_of<Arithmetic>(task.tensors, task.count, scratch);
  if (threadIdx.x != 0) return;
  rank_observation seen = observation_of(total, task.step->words);
  bool alike = true;
  if (who == observer::all_ranks) {
    seen = numerics::observation_of(task.step->agreement);
    alike = numerics::states_agree(task.step->agreement);
  }
  take_step(policy, task, seen, total.totals.squares, alike);
}

/// Threads of a block of losses_kernel.
inline constexpr int loss_threads = 256;

/// Sets words->bad_loss if any loss is Inf or NaN. One loss per thread in a grid-stride loop.
static __global__ void __launch_bounds__(loss_threads)
    losses_kernel(const float* const losses, const std::int64_t count,
                  numerics::scaler_words* const words) {
  bool bad = false;
  const std::int64_t step = std::int64_t{gridDim.x} * loss_threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * loss_threads + threadIdx.x; i < count;
       i += step) {
    bad = bad || (__float_as_uint(losses[i]) & 0x7FFFFFFFu) >= numerics::binary32::inf;
  }
  if (__syncthreads_or(bad ? 1 : 0) != 0 && threadIdx.x == 0) atomicOr(&words->bad_loss, 1u);
}

}  // namespace samebits::cuda
