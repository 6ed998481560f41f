// Functions of the CUDA backends that use a communicator on device memory: messages of words in
// host memory, and gradient reduction (gradient_reduction.cu).
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/training/gradient_reduction.hpp"

namespace samebits::cuda {
namespace {

cudaStream_t stream_of(const communicator& ranks) {
  return static_cast<cudaStream_t>(ranks.stream());
}

/// Enqueues a copy to the device.
void upload(std::byte* device, const void* host, std::size_t bytes, cudaStream_t stream) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream),
        "copy of a message to the device");
}

/// Enqueues a copy to the host.
void download(void* host, const std::byte* device, std::size_t bytes, cudaStream_t stream) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream),
        "copy of a message from the device");
}

/// Waits for the stream.
void finish(cudaStream_t stream) { check(cudaStreamSynchronize(stream), "work on the device"); }

/// Replaces words in host memory by their maxima over all ranks. Waits for the stream.
void all_reduce_max(communicator& ranks, std::span<std::uint32_t> words) {
  if (words.empty()) return;
  const cudaStream_t on = stream_of(ranks);
  const workspace room(nullptr, words.size_bytes(), on, "message: workspace");
  upload(room.data(), words.data(), words.size_bytes(), on);
  ranks.all_reduce_max({reinterpret_cast<std::uint32_t*>(room.data()), words.size()});
  download(words.data(), room.data(), words.size_bytes(), on);
  finish(on);
}

/// Gathers the bytes of all ranks in host memory. Waits for the stream.
void all_gather(communicator& ranks, std::span<const std::byte> sent,
                std::span<std::byte> received) {
  if (sent.empty()) return;
  const cudaStream_t on = stream_of(ranks);
  const workspace from(nullptr, sent.size(), on, "message: workspace");
  const workspace to(nullptr, received.size(), on, "message: workspace");
  upload(from.data(), sent.data(), sent.size(), on);
  ranks.all_gather({from.data(), sent.size()}, {to.data(), received.size()});
  download(received.data(), to.data(), received.size(), on);
  finish(on);
}

}  // namespace

const backends::device_rank_functions emulated_ranks = {
    .all_reduce_max = all_reduce_max,
    .all_gather = all_gather,
    .reduce = reduce_gradients<arithmetic::by_definition>,
};

const backends::device_rank_functions native_ranks = {
    .all_reduce_max = all_reduce_max,
    .all_gather = all_gather,
    .reduce = reduce_gradients<arithmetic::hardware>,
};

}  // namespace samebits::cuda
