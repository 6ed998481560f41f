// Quantizes as DeepSeek-V3 does, on a CUDA stream: activations in tiles of 1 x 128, weights in
// tiles of 128 x 128. The calls are enqueued. The bytes are those of the CPU backends.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::cerr << what << ": " << cudaGetErrorString(error) << "\n";
  std::exit(1);
}

template <class T>
struct device_array {
  explicit device_array(std::size_t count) : bytes(count * sizeof(T)) {
    check(cudaMalloc(&data, bytes), "cudaMalloc");
  }
  ~device_array() { cudaFree(data); }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;
  [[nodiscard]] T* begin() const { return static_cast<T*>(data); }

  std::size_t bytes;
  void* data = nullptr;
};

/// A matrix of weights or activations in host memory, and its copy, codes and scales in device
/// memory.
struct tensor {
  tensor(const char* what, std::int64_t n_rows, std::int64_t n_cols, tile_shape tile)
      : name(what),
        rows(n_rows),
        cols(n_cols),
        options{.tile = tile, .scale = scale_rule::div, .eps = 1e-4f},
        tiles(scales_shape(rows, cols, tile)),
        values(static_cast<std::size_t>(rows * cols)),
        x(values.size()),
        codes(values.size()),
        scales(static_cast<std::size_t>(tiles.rows * tiles.cols)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto r = static_cast<std::int32_t>(random_word(1, 0, i, 16));
      values[i] = bf16(static_cast<float>(r - 32768) / 8192.0f);
    }
  }

  const char* name;
  std::int64_t rows, cols;
  quantize_options options;
  matrix_shape tiles;
  std::vector<bf16> values;
  device_array<bf16> x;
  device_array<e4m3> codes;
  device_array<float> scales;
};

/// Copies the matrix to the device and quantizes it, both on the stream.
void enqueue(tensor& t, cudaStream_t stream) {
  check(cudaMemcpyAsync(t.x.data, t.values.data(), t.x.bytes, cudaMemcpyHostToDevice, stream),
        "to the device");
  quantize(on_device(view_of(t.x.begin(), t.rows, t.cols)),
           {.codes = on_device(view_of(t.codes.begin(), t.rows, t.cols)),
            .scales = on_device(view_of(t.scales.begin(), t.tiles.rows, t.tiles.cols))},
           t.options, on_stream(stream));
}

/// Returns whether codes and scales on the device equal those of a CPU backend.
bool equals_the_cpu(const tensor& t) {
  std::vector<e4m3> codes(t.values.size()), expected(codes.size());
  std::vector<float> scales(t.scales.bytes / sizeof(float)), expected_scales(scales.size());
  check(cudaMemcpy(codes.data(), t.codes.data, t.codes.bytes, cudaMemcpyDeviceToHost), "codes");
  check(cudaMemcpy(scales.data(), t.scales.data, t.scales.bytes, cudaMemcpyDeviceToHost), "scales");
  quantize(view_of(t.values.data(), t.rows, t.cols),
           {.codes = view_of(expected.data(), t.rows, t.cols),
            .scales = view_of(expected_scales.data(), t.tiles.rows, t.tiles.cols)},
           t.options);
  return std::memcmp(codes.data(), expected.data(), t.codes.bytes) == 0 &&
         std::memcmp(scales.data(), expected_scales.data(), t.scales.bytes) == 0;
}

}  // namespace

int main() try {
  tensor activations("activations", 100, 576, {1, 128});
  tensor weights("weights", 300, 576, {128, 128});
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  enqueue(activations, stream);
  enqueue(weights, stream);
  check(cudaStreamSynchronize(stream), "the stream");
  bool same = true;
  for (const tensor* t : {&activations, &weights}) {
    const bool is_same = equals_the_cpu(*t);
    same = same && is_same;
    std::cout << t->name << ": scales [" << t->tiles.rows << ", " << t->tiles.cols
              << "], the bytes of the CPU: " << (is_same ? "yes" : "no") << "\n";
  }
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
