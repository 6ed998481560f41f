// Runs the self-test's probes of IEEE 754 steps in a kernel, compiled with the flags of all other
// kernels. One thread.
#include <cuda_runtime.h>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/self_test/self_test_stream.hpp"
#include "backends/self_test/probes.hpp"

namespace samebits::cuda {
namespace {

/// The kernel's report, one per device. backends::self_test_entry::running guards it.
__device__ backends::probe_report device_report;

/// Runs all probes. One thread.
__global__ void probe_kernel() { backends::run_probes(device_report); }

}  // namespace

void probes_on_device(backends::probe_report& report) {
  const capture_apart apart;
  const own_stream stream;
  launch_kernel("self-test: kernel", probe_kernel, 1, 1, 0, stream.get());
  check(cudaMemcpyFromSymbolAsync(&report, device_report, sizeof report, 0, cudaMemcpyDeviceToHost,
                                  stream.get()),
        "self-test: copy");
  check(cudaStreamSynchronize(stream.get()), "self-test: kernel");
}

}  // namespace samebits::cuda
