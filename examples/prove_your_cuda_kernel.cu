// The test kit on a GPU: proves a user's CUDA kernel against the reference, and finds a planted
// error of one ulp on ties in a variant of the kernel.
#include <cstdint>
#include <iostream>

#include "e4m3_kernels.hpp"
#include "samebits/testkit/cuda.hpp"

using namespace samebits;

template <ties Ties>
__global__ void to_e4m3_kernel(const float* in, std::uint8_t* out, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = to_e4m3<Ties>(in[i]);
}

/// Checks bit for bit that the kernel converts fp32 to e4m3, nearest even, saturating. sweep_stride
/// 1 checks all 2^32 inputs.
template <ties Ties>
testkit::check_result prove(std::uint64_t sweep_stride) {
  const auto launch = [](const float* in, std::uint8_t* out, std::int64_t n, cudaStream_t stream) {
    if (n == 0) return;
    const auto blocks = static_cast<unsigned>((n + 255) / 256);
    to_e4m3_kernel<Ties><<<blocks, 256, 0, stream>>>(in, out, n);
  };
  return testkit::check_conversion({.from = format_id::fp32,
                                    .to = format_id::e4m3,
                                    .rule = {rounding::nearest_even, overflow::saturate}},
                                   launch, {.sweep_stride = sweep_stride});
}

int main() try {
  const testkit::check_result right = prove<ties::to_even>(1);
  std::cout << "to even: " << right.compared() << " results, " << (right ? "0 differ" : "differ")
            << "\n"
            << right.message();

  const testkit::check_result planted = prove<ties::away>(0);
  std::cout << "away: " << (planted ? "not caught" : "caught") << "\n" << planted.message() << "\n";
  const bool at_a_tie = planted.failure() && planted.failure()->is_tie;
  return right && at_a_tie ? 0 : 1;
} catch (const samebits::cuda_error& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
