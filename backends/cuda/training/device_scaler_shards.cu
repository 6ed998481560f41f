// device_loss_scaler with gradients that are sharded over ranks: the messages between ranks, and
// the decision from them.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/training/device_scaler_memory.cuh"
#include "backends/ranks/ranks.hpp"
#include "backends/ranks/shard_layout.hpp"

namespace samebits {

void device_loss_scaler::memory::agree_on_shards(communicator& ranks) {
  if (ranks.rank() != layout->rank() || ranks.size() != layout->ranks()) {
    throw invalid_argument(
        "ranks: is rank " + std::to_string(ranks.rank()) + " of " + std::to_string(ranks.size()) +
        ", options.shards were laid out for rank " + std::to_string(layout->rank()) + " of " +
        std::to_string(layout->ranks()));
  }
  const cuda::shard_tables& t = shards->tables();
  constexpr std::uint64_t small_of_block = cuda::partial_sum_threads / 32, max_blocks = 1024;
  const std::uint64_t wanted = std::max(
      {std::uint64_t{1}, t.wide_count, (t.own_count + small_of_block - 1) / small_of_block});
  visit([&](const auto& of, const auto* resident, auto arithmetic) {
    cuda::launch_kernel(
        "kernel of the message to other ranks",
        cuda::shard_message_kernel<decltype(arithmetic), cuda::state_of<decltype(of)>>,
        static_cast<unsigned>(std::min(wanted, max_blocks)), cuda::partial_sum_threads, 0,
        static_cast<cudaStream_t>(ranks.stream()), inspection.partial_statistics, t, fingerprint,
        resident, task());
  });
  const std::size_t bytes = layout->message_bytes();
  ranks.all_gather(
      {reinterpret_cast<const std::byte*>(t.sent), bytes},
      {reinterpret_cast<std::byte*>(t.received), bytes * static_cast<std::size_t>(ranks.size())});
}

void device_loss_scaler::memory::decide_on_shards(cudaStream_t stream) {
  visit([&](const auto& of, auto* at, auto arithmetic) {
    using settings_type = std::remove_cvref_t<decltype(of)>;
    using state_type = cuda::state_of<settings_type>;
    cuda::launch_kernel("decide kernel",
                        cuda::decide_shards_kernel<decltype(arithmetic), settings_type, state_type>,
                        1, cuda::total_threads, 0, stream, of, at, task(), shards->tables());
  });
}

}  // namespace samebits
