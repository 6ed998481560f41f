// Ranks on device memory, simulated in one process: each on a stream of its own, of which none
// waits for the host.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "samebits/communicator.hpp"

namespace samebits::support {

inline constexpr int max_device_ranks = 8;

/// The streams of some ranks, and events that order them.
class device_streams {
 public:
  device_streams();
  ~device_streams();
  device_streams(const device_streams&) = delete;
  device_streams& operator=(const device_streams&) = delete;

  [[nodiscard]] cudaStream_t stream(int rank) const { return streams_[rank]; }
  /// Marks what has been enqueued on a rank's stream, before or after an operation.
  void mark(int rank, bool after) const;
  /// Makes what follows on a rank's stream wait for the marks of `count` ranks.
  void wait_for_all(int rank, int count, bool after) const;
  /// Until everything on the streams is done.
  void synchronize() const;

 private:
  cudaStream_t streams_[max_device_ranks] = {};
  cudaEvent_t before_[max_device_ranks] = {};
  cudaEvent_t after_[max_device_ranks] = {};
};

/// Runs body(ranks) for each of `count` ranks on a thread of its own, as testkit::simulate_ranks
/// does, on device memory. Throws what that throws. Does not wait for the streams: if they all belong
/// to one capture, the work of all ranks is captured into one graph.
void enqueue_on_ranks(const device_streams& streams, int count,
                      const std::function<void(communicator&)>& body);

/// The same, and waits for the streams in the end.
void simulate_device_ranks(const device_streams& streams, int count,
                           const std::function<void(communicator&)>& body);

}  // namespace samebits::support
