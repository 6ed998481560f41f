// Quantization fused into a user's kernel: one pass computes relu(x), its 1 x 128 scales and its
// codes, and never writes relu(x) to memory. The bytes are those of relu followed by quantize().
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <vector>

#include "samebits/kernel/device_quantize.cuh"
#include "samebits/samebits.hpp"

using namespace samebits;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::cerr << what << ": " << cudaGetErrorString(error) << "\n";
  std::exit(1);
}

constexpr int per_lane = 4;  // 32 lanes hold a tile of 128

/// Computes codes and scales of relu(x). One warp per tile of 1 x 128. Requires: cols is a multiple
/// of 128.
__global__ void relu_quantize(const float* x, std::int64_t elements, std::uint8_t* codes,
                              float* scales) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * per_lane;
  if (at >= elements) return;
  float y[per_lane];
  for (int i = 0; i < per_lane; ++i) y[i] = x[at + i] > 0.0f ? x[at + i] : 0.0f;
  const device::tile_options options{.scale = scale_rule::div, .eps = 1e-4f};
  const auto q = device::quantize_tile<format_id::e4m3>(y, options);
  for (int i = 0; i < per_lane; ++i) codes[at + i] = q.codes[i];
  if (threadIdx.x % 32 == 0) scales[at / 128] = q.scale;
}

int main() try {
  constexpr std::int64_t rows = 300, cols = 1024, tiles = cols / 128;
  std::vector<float> x(rows * cols), relu(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto r = static_cast<std::int32_t>(random_word(3, 0, i, 20));
    x[i] = static_cast<float>(r - 524288) / 65536.0f;
    relu[i] = x[i] > 0.0f ? x[i] : 0.0f;
  }
  std::vector<std::uint8_t> codes(x.size()), expected(x.size());
  std::vector<float> scales(rows * tiles), expected_scales(scales.size());
  quantize(view_of(relu.data(), rows, cols),
           {.codes = view_of_codes(format_id::e4m3, expected.data(), rows, cols),
            .scales = view_of(expected_scales.data(), rows, tiles)},
           {.tile = {1, 128}, .scale = scale_rule::div, .eps = 1e-4f});

  float *device_x = nullptr, *device_scales = nullptr;
  std::uint8_t* device_codes = nullptr;
  check(cudaMalloc(&device_x, x.size() * 4), "cudaMalloc");
  check(cudaMalloc(&device_codes, codes.size()), "cudaMalloc");
  check(cudaMalloc(&device_scales, scales.size() * 4), "cudaMalloc");
  check(cudaMemcpy(device_x, x.data(), x.size() * 4, cudaMemcpyHostToDevice), "to the device");
  const auto blocks = static_cast<unsigned>((rows * cols / per_lane + 255) / 256);
  relu_quantize<<<blocks, 256>>>(device_x, rows * cols, device_codes, device_scales);
  check(cudaGetLastError(), "launch");
  check(cudaMemcpy(codes.data(), device_codes, codes.size(), cudaMemcpyDeviceToHost), "codes");
  check(cudaMemcpy(scales.data(), device_scales, scales.size() * 4, cudaMemcpyDeviceToHost),
        "scales");
  cudaFree(device_x);
  cudaFree(device_codes);
  cudaFree(device_scales);

  const bool same = codes == expected &&
                    std::memcmp(scales.data(), expected_scales.data(), scales.size() * 4) == 0;
  std::cout << codes.size() << " codes, " << scales.size()
            << " scales, the bytes of the CPU: " << (same ? "yes" : "no") << "\n";
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
