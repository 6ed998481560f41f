// host_ranks: communicator operations on host words, for communicators on host and device memory.
#include "backends/ranks/ranks.hpp"

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/ranks/rank_functions.hpp"

namespace samebits::backends {

host_ranks::host_ranks(communicator& ranks) : ranks_(ranks) {
  if (ranks.space() == memory_space::host) return;
  const device_scope on(ranks.space(), no_device, ranks.stream());
  staged_by_ =
      resolve({}, memory_space::device, [](const backend& b) { return b.ranks != nullptr; }).ranks;
  refuse_if<unsupported>(staged_by_ == nullptr,
                         "a communicator on device memory needs a CUDA backend that has ranks");
}

void host_ranks::all_reduce_max(std::span<std::uint32_t> words) {
  if (staged_by_ == nullptr) return ranks_.all_reduce_max(words);
  const device_scope on(ranks_.space(), no_device, ranks_.stream(), completion::awaited);
  staged_by_->all_reduce_max(ranks_, words);
}

void host_ranks::all_gather(std::span<const std::byte> sent, std::span<std::byte> received) {
  if (staged_by_ == nullptr) return ranks_.all_gather(sent, received);
  const device_scope on(ranks_.space(), no_device, ranks_.stream(), completion::awaited);
  staged_by_->all_gather(ranks_, sent, received);
}

}  // namespace samebits::backends
