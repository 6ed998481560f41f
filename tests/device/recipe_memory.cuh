// Device memory for tests of recipes: random matrices made there, bytes compared there.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/quantize.hpp"
#include "support/effort.hpp"
#include "tests/device/both_sides.cuh"

namespace samebits::support {

/// Mixes a number's bits (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014).
__host__ __device__ inline std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// A code of a format with `mantissa` and `exponent` bits. Runs of 64 elements have a binade of
/// their own, some are zeros, of any exponent, or subnormal; every 16th row has NaN and Inf.
__host__ __device__ inline std::uint32_t random_code(int exponent, int mantissa, std::uint64_t row,
                                                     std::uint64_t col, std::uint64_t seed) {
  const std::uint64_t r = mixed(seed * 0x10001u + (row << 24) + col);
  const std::uint64_t run = mixed(seed * 0x20003u + (row << 24) + col / 64);
  const auto last = (std::uint64_t{1} << exponent) - 1;
  const auto kind = static_cast<int>(run % 64);
  std::uint64_t field = last / 2 - 2 + run / 64 % 9 - r / 4 % 7;
  if (kind == 1 || r % 509 == 0) field = r / 8 % last;
  if (kind == 2) field = 0;
  if (mixed(seed + row) % 16 == 0 && r % 2053 == 0) field = last;
  if (kind == 0) return static_cast<std::uint32_t>((r & 1) << (exponent + mantissa));
  const std::uint64_t fraction = r >> 40 & ((std::uint64_t{1} << mantissa) - 1);
  const bool infinite = field == last && r >> 63 != 0;
  return static_cast<std::uint32_t>((r & 1) << (exponent + mantissa) | field << mantissa |
                                    (infinite ? 0 : fraction));
}

__global__ inline void draw_kernel(void* codes, int bytes, int exponent, int mantissa,
                                   std::int64_t count, std::int64_t cols, std::uint64_t seed) {
  for_elements(count, [&](std::int64_t i) {
    const std::uint32_t code = random_code(exponent, mantissa, static_cast<std::uint64_t>(i / cols),
                                           static_cast<std::uint64_t>(i % cols), seed);
    if (bytes == 4) {
      static_cast<std::uint32_t*>(codes)[i] = code;
    } else {
      static_cast<std::uint16_t*>(codes)[i] = static_cast<std::uint16_t>(code);
    }
  });
}

/// A dense matrix of fp32, fp16 or bf16.
inline device_bytes random_matrix(format_id format, std::int64_t rows, std::int64_t cols,
                                  std::uint64_t seed) {
  const format_spec& spec = spec_of(format);
  device_bytes matrix(static_cast<std::size_t>(rows * cols * storage_bytes(format)));
  draw_kernel<<<4096, 256>>>(matrix.data(), spec.storage_bits / 8, spec.exponent_bits,
                             spec.mantissa_bits, rows * cols, cols, seed);
  check_cuda(cudaGetLastError(), "draw");
  return matrix;
}

__global__ inline void differ_kernel(const unsigned char* a, const unsigned char* b,
                                     std::int64_t count, difference* seen) {
  for_elements(count, [&](std::int64_t i) {
    if (a[i] != b[i]) note(seen, i);
  });
}

/// How many bytes of two blocks of one size differ.
inline std::uint64_t differing_bytes(const device_bytes& a, const device_bytes& b) {
  if (a.size() != b.size()) throw std::logic_error("blocks of different sizes");
  return seen_by([&](difference* seen) {
           differ_kernel<<<4096, 256>>>(a.as<const unsigned char>(), b.as<const unsigned char>(),
                                        static_cast<std::int64_t>(a.size()), seen);
         })
      .count;
}

/// The weights of a model of 1.31 billion parameters: 24 layers of width 2048 and an embedding,
/// with their biases and normalisations as rows; 289 tensors. Under the smallest effort 2 layers of
/// width 512.
inline std::vector<matrix_shape> model_shapes() {
  const std::int64_t d = by_effort(2048, 512), words = by_effort(50304, 500);
  const int layers = by_effort(24, 2);
  std::vector<matrix_shape> shapes = {{words, d}};
  for (int layer = 0; layer < layers; ++layer) {
    shapes.insert(shapes.end(), {{3 * d, d},
                                 {d, d},
                                 {4 * d, d},
                                 {d, 4 * d},
                                 {1, 3 * d},
                                 {1, d},
                                 {1, 4 * d},
                                 {1, d},
                                 {1, d},
                                 {1, d},
                                 {1, d},
                                 {1, d}});
  }
  return shapes;
}

}  // namespace samebits::support
