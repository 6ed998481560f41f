// Kernels of a loss scaler whose gradients are sharded over ranks: this rank's message, and the
// decision from the messages of all ranks.
//
// The sum of a tensor's squares is a tree over its chunks (contract §6). A slot is the partial sum
// of 1024 chunks. A rank sends the largest partial sums (`partial_sums`) of its own chunks, of at
// most a slot each.
//   shard_message_kernel   one warp per partial sum of up to 32 chunks, one block per wider one
//   decide_shards_kernel   one block: combines the partial sums of all ranks, then decides
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/tensor_list/list_total.cuh"
#include "backends/cuda/training/scaler_kernels.cuh"
#include "backends/ranks/shard_layout.hpp"
#include "numerics/sums/shard_tree.hpp"
#include "numerics/tensor_list/inspect.hpp"

namespace samebits::cuda {

/// Observations of the blocks that are done; zeros before the first block and after the last.
struct shard_progress {
  std::uint32_t amax;
  std::uint32_t first_bad;  ///< numerics::position_word
  std::uint32_t arrived;    ///< finished blocks
};

/// shard_tables: a shard layout and the messages, in device memory.
struct shard_tables {
  const backends::own_sum* own;  ///< [own_count]: partial sums that this rank forms
  const std::uint32_t* wide;     ///< [wide_count]: own partial sums of > few_chunks_of_sum chunks
  std::uint64_t own_count;
  std::uint64_t wide_count;
  const numerics::received_sum* partial_sums;  ///< partial sums of all ranks, in tensor order
  const std::uint64_t* partial_sum_of_slot;    ///< [slots + 1]: first entry of `partial_sums`
  const std::uint64_t* slot_of_tensor;         ///< [tensors + 1]: first slot
  const std::uint32_t* long_tensors;           ///< [long_count]: tensors of more than one slot
  std::uint64_t slots;
  std::uint64_t tensors;
  std::uint64_t long_count;
  shard_progress* progress;
  std::uint64_t* sent;      ///< [message_words]: this rank's message
  std::uint64_t* received;  ///< [ranks * message_words]: all messages
  std::uint64_t* sums;      ///< [slots]: sum of squares of each slot
  std::uint64_t message_words;
  int rank;
  int ranks;
  std::uint32_t fingerprint;
};

/// Maximum number of chunks that one warp combines.
inline constexpr std::uint32_t few_chunks_of_sum = 32;
/// Threads of a block of shard_message_kernel.
inline constexpr int partial_sum_threads = 256;

/// Amax and first bad tensor of the chunks that a thread has read.
struct seen_chunks {
  std::uint32_t amax = 0;
  std::uint32_t first_bad = 0;

  __device__ __forceinline__ void add(const numerics::chunk_statistics& c, std::uint32_t tensor) {
    amax = max(amax, c.amax);
    if (c.nan + c.inf != 0) first_bad = max(first_bad, numerics::position_word(tensor));
  }
};

/// Forms this rank's partial sums of few chunks. One warp per partial sum.
template <class Arithmetic>
__device__ void form_small_sums(const numerics::chunk_statistics* partial_statistics,
                                const shard_tables& t, seen_chunks& seen) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (partial_sum_threads / 32);
  for (std::uint64_t i = (std::uint64_t{blockIdx.x} * partial_sum_threads + threadIdx.x) / 32;
       i < t.own_count; i += warps) {
    const backends::own_sum own = t.own[i];
    if (own.chunks > few_chunks_of_sum) continue;
    auto partial_sum = Arithmetic::no_partial_sum();
    if (lane < own.chunks) {
      const numerics::chunk_statistics c = partial_statistics[own.first_chunk + lane];
      seen.add(c, own.tensor);
      partial_sum = Arithmetic::from_bits(c.squares);
    }
    partial_sum = warp_partial_sum<Arithmetic>(partial_sum);
    if (lane == 0) t.sent[backends::shard_data::first_value + i] = Arithmetic::bits(partial_sum);
  }
}

/// Forms this rank's partial sums of more than few_chunks_of_sum chunks. One block per partial sum.
template <class Arithmetic>
using wide_tree =
    block_tree<Arithmetic, partial_sum_threads, numerics::slot_chunks / partial_sum_threads>;
template <class Arithmetic>
__device__ void form_wide_sums(const numerics::chunk_statistics* partial_statistics,
                               const shard_tables& t, seen_chunks& seen,
                               typename wide_tree<Arithmetic>::scratch& s) {
  using tree = wide_tree<Arithmetic>;
  for (std::uint64_t k = blockIdx.x; k < t.wide_count; k += gridDim.x) {
    const std::uint32_t i = t.wide[k];
    const backends::own_sum own = t.own[i];
    const auto partial_sum = tree::sum(own.chunks, s, [&](std::uint64_t c) {
      const numerics::chunk_statistics statistics = partial_statistics[own.first_chunk + c];
      seen.add(statistics, own.tensor);
      return Arithmetic::from_bits(statistics.squares);
    });
    if (threadIdx.x == 0)
      t.sent[backends::shard_data::first_value + i] = Arithmetic::bits(partial_sum);
    __syncthreads();  // scratch is used again
  }
}

/// Writes this rank's message to t.sent. The partial sums come from all blocks, the observation
/// from the block that finishes last.
template <class Arithmetic>
__global__ void __launch_bounds__(partial_sum_threads)
    shard_message_kernel(const numerics::chunk_statistics* const partial_statistics,
                         const shard_tables t, const std::uint32_t settings,
                         const __grid_constant__ scaler_policy policy, const decision_task task) {
  __shared__ typename wide_tree<Arithmetic>::scratch scratch;
  __shared__ std::uint32_t amax, first_bad;
  if (threadIdx.x == 0) amax = first_bad = 0;
  __syncthreads();
  seen_chunks seen;
  form_small_sums<Arithmetic>(partial_statistics, t, seen);
  form_wide_sums<Arithmetic>(partial_statistics, t, seen, scratch);
  if (seen.amax != 0) atomicMax(&amax, seen.amax);
  if (seen.first_bad != 0) atomicMax(&first_bad, seen.first_bad);
  __syncthreads();
  if (threadIdx.x != 0) return;
  shard_progress& all = *t.progress;
  atomicMax(&all.amax, amax);
  if (first_bad != 0) atomicMax(&all.first_bad, first_bad);
  __threadfence();
  if (atomicAdd(&all.arrived, 1u) != gridDim.x - 1) return;
  __threadfence();
  rank_observation mine;
  mine.seen.amax = __ldcg(&all.amax);
  mine.first_bad = numerics::position_of(__ldcg(&all.first_bad));
  mine.seen.nonfinite = mine.first_bad >= 0;
  mine.seen.loss_nonfinite = task.step->words.bad_loss != 0;
  *reinterpret_cast<numerics::agreement_message*>(t.sent) = numerics::message_of(
      mine, t.rank, state_word(settings, policy, task.max_norm, t.fingerprint));
  all = {0, 0, 0};
}

/// Combines the agreement messages of all ranks by maxima, in shared memory. All threads must call,
/// and pass a __syncthreads() before thread 0 reads words[].
__device__ __forceinline__ void combine_messages(
    const shard_tables& t, std::uint32_t (&words)[numerics::agreement_words]) {
  if (threadIdx.x < numerics::agreement_words) words[threadIdx.x] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < t.ranks * numerics::agreement_words;
       i += total_threads) {
    const int rank = i / numerics::agreement_words, word = i % numerics::agreement_words;
    const auto* const message = reinterpret_cast<const std::uint32_t*>(
        t.received + static_cast<std::uint64_t>(rank) * t.message_words);
    atomicMax(&words[word], message[word]);
  }
}

/// The sum of squares of all tensors over all ranks, in thread 0. Combines slots, then each tensor,
/// then the tensors. All threads must call.
template <class Arithmetic>
__device__ std::uint64_t combined_squares(
    const shard_tables& t, typename block_tree<Arithmetic, total_threads>::scratch& s) {
  using partial_sum = typename Arithmetic::partial_sum;
  const auto add = [](partial_sum a, partial_sum b) { return Arithmetic::add_partial_sums(a, b); };
  for (std::uint64_t slot = threadIdx.x; slot < t.slots; slot += total_threads) {
    const std::uint64_t first = t.partial_sum_of_slot[slot], last = t.partial_sum_of_slot[slot + 1];
    const auto value_at = [&](std::uint64_t word) {
      return Arithmetic::from_bits(t.received[word]);
    };
    t.sums[slot] = Arithmetic::bits(
        numerics::slot_sum<partial_sum>(t.partial_sums + first, last - first, value_at, add));
  }
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  for (std::uint64_t k = threadIdx.x / 32; k < t.long_count; k += total_threads / 32) {
    const std::uint32_t tensor = t.long_tensors[k];
    const std::uint64_t first = t.slot_of_tensor[tensor];
    const std::uint64_t slots = t.slot_of_tensor[tensor + 1] - first;
    partial_sum waiting[64];
    std::uint64_t done = 0;  // partial sums of 32 slots
    for (std::uint64_t i = lane; i - lane < slots; i += 32) {
      const partial_sum own =
          i < slots ? Arithmetic::from_bits(t.sums[first + i]) : Arithmetic::no_partial_sum();
      numerics::append_input(waiting, done, warp_partial_sum<Arithmetic>(own), add);
    }
    const partial_sum root =
        numerics::root_of_tree(waiting, done, Arithmetic::no_partial_sum(), add);
    if (lane == 0) t.sums[first] = Arithmetic::bits(root);
  }
  __syncthreads();
  const partial_sum sum =
      block_tree<Arithmetic, total_threads>::sum(t.tensors, s, [&](std::uint64_t i) {
        const std::uint64_t first = t.slot_of_tensor[i];
        const bool any = t.slot_of_tensor[i + 1] != first;
        return any ? Arithmetic::from_bits(t.sums[first]) : Arithmetic::no_partial_sum();
      });
  return Arithmetic::bits(sum);
}

/// Decides from the messages of all ranks. One block.
template <class Arithmetic>
__global__ void __launch_bounds__(total_threads)
    decide_shards_kernel(const __grid_constant__ scaler_policy policy, const decision_task task,
                         const shard_tables t) {
  __shared__ typename block_tree<Arithmetic, total_threads>::scratch scratch;
  __shared__ std::uint32_t words[numerics::agreement_words];
  combine_messages(t, words);
  const std::uint64_t squares = combined_squares<Arithmetic>(t, scratch);
  if (threadIdx.x != 0) return;
  const numerics::agreement_message all = {words[0], words[1], words[2], words[3],
                                           words[4], words[5], words[6], words[7]};
  take_step(policy, task, numerics::observation_of(all), squares, numerics::states_agree(all));
}

}  // namespace samebits::cuda
