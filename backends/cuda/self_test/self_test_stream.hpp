// A stream and a capture mode of the self-test's own, independent of the caller's streams and
// captures.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {

/// Lets this thread make calls that a capture elsewhere in the process forbids by default. The
/// self-test uses no stream that is being captured.
class capture_apart {
 public:
  capture_apart() { check(cudaThreadExchangeStreamCaptureMode(&mode_), "self-test: capture mode"); }
  ~capture_apart() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  capture_apart(const capture_apart&) = delete;
  capture_apart& operator=(const capture_apart&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// A new stream that does not synchronize with the default stream.
class own_stream {
 public:
  own_stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "self-test: stream");
  }
  ~own_stream() { (void)cudaStreamDestroy(stream_); }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace samebits::cuda
