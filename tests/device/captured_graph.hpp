// Calls captured into a CUDA graph, which can be replayed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "device/device_copy.hpp"

namespace samebits::support {

inline void begin_capture(cudaStream_t stream) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
}
/// Ends a capture; returns whether nothing has invalidated it.
[[nodiscard]] inline bool end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const bool whole = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
  if (graph != nullptr) cudaGraphDestroy(graph);
  return whole;
}

/// What `calls` enqueue on a stream, as a graph. Keeps `calls`, and with them the lists that they
/// hold, which the graph must not outlive.
class captured_graph {
 public:
  captured_graph(cudaStream_t stream, std::function<void()> calls)
      : stream_(stream), calls_(std::move(calls)) {
    begin_capture(stream_);
    try {
      calls_();
    } catch (...) {  // the stream must be usable again
      static_cast<void>(end_capture(stream_));
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream_, &graph_), "end capture");
    check_cuda(cudaGraphInstantiate(&exec_, graph_, 0), "instantiate");
  }
  ~captured_graph() {
    cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
  }
  captured_graph(const captured_graph&) = delete;
  captured_graph& operator=(const captured_graph&) = delete;

  [[nodiscard]] std::size_t nodes() const {
    std::size_t count = 0;
    check_cuda(cudaGraphGetNodes(graph_, nullptr, &count), "nodes");
    return count;
  }
  void launch() const { check_cuda(cudaGraphLaunch(exec_, stream_), "replay"); }
  /// Launches it behind all other work on the device, and waits.
  void replay() const {
    check_cuda(cudaDeviceSynchronize(), "work before a replay");
    launch();
    check_cuda(cudaStreamSynchronize(stream_), "replay");
  }

 private:
  cudaStream_t stream_;
  std::function<void()> calls_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

/// A stream of the current device; by default one that does not wait for the default stream.
class own_stream {
 public:
  explicit own_stream(unsigned flags = cudaStreamNonBlocking) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, flags), "cudaStreamCreate");
  }
  ~own_stream() {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace samebits::support
