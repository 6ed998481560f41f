// The CUDA header of the test kit, compiled without nvcc; it is not run.
#include "samebits/testkit/cuda.hpp"

bool prove_launcher() {
  const auto launch = [](const float* in, std::uint8_t* out, std::int64_t n, cudaStream_t stream) {
    cudaMemcpyAsync(out, in, static_cast<std::size_t>(n), cudaMemcpyDeviceToDevice, stream);
  };
  return static_cast<bool>(samebits::testkit::check_conversion({}, launch));
}
