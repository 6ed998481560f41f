// The self-test's probes in a kernel, in the flags of every kernel of this library.
#include <cuda_runtime.h>

#include "backends/cuda/cuda.hpp"
#include "backends/cuda/error.hpp"
#include "backends/self_test_probes.hpp"

namespace samebits::cuda {
namespace {

/// Where the kernel writes, one on each device; backends::self_test_entry::running guards it.
__device__ backends::probe_report device_report;

__global__ void probe_kernel() { backends::run_probes(device_report); }

/// Lets this thread make calls that a capture elsewhere in the process forbids by default; nothing
/// here touches a stream that is being captured.
class capture_apart {
 public:
  capture_apart() { check(cudaThreadExchangeStreamCaptureMode(&mode_), "self-test: capture mode"); }
  ~capture_apart() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  capture_apart(const capture_apart&) = delete;
  capture_apart& operator=(const capture_apart&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

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

}  // namespace

void probes_on_device(backends::probe_report& report) {
  const capture_apart apart;
  const own_stream stream;
  probe_kernel<<<1, 1, 0, stream.get()>>>();
  check(cudaGetLastError(), "self-test: launch");
  check(cudaMemcpyFromSymbolAsync(&report, device_report, sizeof report, 0, cudaMemcpyDeviceToHost,
                                  stream.get()),
        "self-test: copy");
  check(cudaStreamSynchronize(stream.get()), "self-test: kernel");
}

int current_device_number() {
  int device = 0;
  check(cudaGetDevice(&device), "self-test: current device");
  return device;
}

bool is_capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
  if (error == cudaErrorStreamCaptureImplicit) {  // the default stream, while another is captured
    (void)cudaGetLastError();
    return true;
  }
  check(error, "self-test: capture status");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace samebits::cuda
