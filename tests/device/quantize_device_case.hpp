// One random case of quantization on device memory: options, shapes, and matrices with gaps.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <initializer_list>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"

namespace samebits {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

/// A block of device memory, filled from the host and read back.
class device_block {
 public:
  explicit device_block(std::size_t bytes) : bytes_(bytes) {
    check(cudaMalloc(&data_, bytes + 1), "cudaMalloc");
  }
  ~device_block() { cudaFree(data_); }
  device_block(const device_block&) = delete;
  device_block& operator=(const device_block&) = delete;
  void upload(const void* host) {
    check(cudaMemcpy(data_, host, bytes_, cudaMemcpyHostToDevice), "to the device");
  }
  void download(void* host) const {
    check(cudaMemcpy(host, data_, bytes_, cudaMemcpyDeviceToHost), "from the device");
  }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

/// A matrix view with gaps and an offset, in host memory and the same on the device.
struct placed {
  format_id format = format_id::fp32;
  std::int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 1, offset = 0;  // elements
  bool wanted = true;

  [[nodiscard]] std::size_t bytes() const {
    const std::int64_t last =
        rows == 0 || cols == 0 ? 0 : (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
    return static_cast<std::size_t>((offset + last + 8) * storage_bytes(format));
  }
  [[nodiscard]] matrix_view at(std::byte* base, memory_space space) const {
    if (!wanted) return {};
    return {
        base + offset * storage_bytes(format), format, rows, cols, row_stride, col_stride, space};
  }
};

using engine = std::mt19937_64;

inline std::int64_t pick(engine& random, std::initializer_list<std::int64_t> from) {
  return from.begin()[random() % from.size()];
}

inline placed place(engine& random, format_id format, std::int64_t rows, std::int64_t cols,
                    bool plain) {
  placed p{format, rows, cols, cols, 1, 0};
  if (plain) return p;
  p.col_stride = pick(random, {1, 1, 1, 2});
  p.row_stride = cols * p.col_stride + pick(random, {0, 0, 3, 16});
  if (random() % 5 == 0) p.col_stride = rows + 1, p.row_stride = 1;
  p.offset = pick(random, {0, 0, 1, 8, 16});
  return p;
}

/// Bits of a source format: ordinary magnitudes, with rows of zeros, tiny and huge ones, NaN and
/// Inf.
inline std::uint32_t random_code(engine& random, format_id from, int kind) {
  const std::uint64_t r = random();
  auto bits = static_cast<std::uint32_t>(r);
  if (kind == 0) return static_cast<std::uint32_t>(r & 1) << (spec_of(from).storage_bits - 1);
  if (kind <= 6) {  // binary32 of an exponent near that of 1, or of any for kind 6
    const std::uint32_t exponent =
        kind == 6 ? bits >> 24 : 110 + static_cast<std::uint32_t>(r >> 40) % 30;
    bits = (bits & 0x807FFFFFu) | exponent << 23;
  }
  const auto code = convert_code(format_id::fp32, from, bits).code;
  return static_cast<std::uint32_t>(code);
}

inline std::vector<std::byte> random_memory(engine& random, const placed& p) {
  std::vector<std::byte> memory(p.bytes());
  const auto width = static_cast<std::size_t>(storage_bytes(p.format));
  int kind = 3;
  for (std::size_t at = 0; at + width <= memory.size(); at += width) {
    if (random() % 64 == 0) kind = static_cast<int>(random() % 8);
    const std::uint32_t code = random_code(random, p.format, kind);
    std::memcpy(memory.data() + at, &code, width);
  }
  return memory;
}

struct quantize_case {
  placed in, codes, scales, codes_transposed, scales_transposed, inverse_scales;
  bool counts = false, own_workspace = false;
  quantize_options options;

  [[nodiscard]] quantize_outputs outputs(const std::vector<std::byte*>& bases,
                                         memory_space space) const {
    return {codes.at(bases[0], space), scales.at(bases[1], space),
            codes_transposed.at(bases[2], space), scales_transposed.at(bases[3], space),
            counts ? reinterpret_cast<quantize_statistics*>(bases[4]) : nullptr};
  }
};

inline quantize_case random_case(engine& random) {
  using enum format_id;
  quantize_case c;
  const bool plain = random() % 2 == 0;
  const std::int64_t g = pick(random, {16, 32, 64, 128, 256});
  const std::vector<tile_shape> tiles{{1, g}, {1, g}, {1, g}, {g, 1},
                                      {g, g}, {1, 0}, {0, 1}, {0, 0}};
  c.options.tile = tiles[random() % tiles.size()];
  const std::int64_t rows = pick(random, {0, 1, 2, 17, 64, 129, 300});
  const std::int64_t cols = plain ? 16 * pick(random, {1, 2, 7, 8, 9, 16, 40})
                                  : pick(random, {1, 15, 16, 31, 100, 128, 129, 257, 640});
  const std::vector<format_id> sources{fp32, fp16, bf16};
  const format_id to = random() % 2 == 0 ? e4m3 : e5m2;
  c.in = place(random, sources[random() % 3], rows, cols, plain);
  c.codes = place(random, to, rows, cols, plain);
  const matrix_shape s = scales_shape(rows, cols, c.options.tile);
  c.scales = place(random, fp32, s.rows, s.cols, plain);
  c.codes_transposed = place(random, to, cols, rows, plain);
  c.scales_transposed = place(random, fp32, s.cols, s.rows, plain);
  c.codes_transposed.wanted = random() % 3 == 0;
  c.scales_transposed.wanted = random() % 3 == 0;
  c.codes.wanted = !c.codes_transposed.wanted || random() % 2 == 0;
  c.scales.wanted = random() % 4 != 0;
  c.options.scale = static_cast<scale_rule>(random() % enum_count<scale_rule>);
  c.inverse_scales = place(random, fp32, s.rows, s.cols, plain);
  c.inverse_scales.wanted = random() % 6 == 0;
  if (!c.inverse_scales.wanted && is_power_of_two(c.options.scale) && random() % 2 == 0) {
    c.scales.format = c.scales_transposed.format = e8m0;
  }
  if (random() % 4 == 0) c.options.scale_overflow = scale_overflow::input_max;
  c.options.nonfinite = static_cast<nonfinite>(random() % enum_count<nonfinite>);
  c.options.eps = random() % 3 == 0 ? 1e-4f : 0.0f;
  if (random() % 4 == 0) c.options.upper_bound = 0.5f;
  if (random() % 2 == 0) c.options.rounding = rounding::stochastic;
  if (random() % 4 == 0) c.options.overflow = static_cast<overflow>(random() % 3);
  if (random() % 4 == 0) c.options.nan = static_cast<nan_policy>(random() % 2);
  c.options.random = {random(), random(), random() % 2 == 0 ? random() & ~15ull : random(),
                      std::nullopt, static_cast<int>(pick(random, {8, 16, 32, 5, 13, 24}))};
  c.counts = random() % 4 == 0;
  c.own_workspace = random() % 2 == 0;
  if (random() % 3 == 0) c.options.random.pitch = random() % 2 == 0 ? random() & ~15ull : random();
  return c;
}

inline std::string describe(const quantize_case& c) {
  std::ostringstream text;
  text << name(c.in.format) << " [" << c.in.rows << ", " << c.in.cols << "] strides "
       << c.in.row_stride << ", " << c.in.col_stride << " offset " << c.in.offset << " to "
       << name(c.codes.format) << ", tile " << c.options.tile.rows << " x " << c.options.tile.cols
       << ", scale rule " << static_cast<int>(c.options.scale) << ", nonfinite "
       << static_cast<int>(c.options.nonfinite) << ", " << name(c.options.rounding)
       << " K=" << c.options.random.bits << ", " << name(c.options.overflow) << ", "
       << name(c.options.nan) << ", codes " << c.codes.wanted << " scales " << c.scales.wanted
       << " transposed " << c.codes_transposed.wanted << c.scales_transposed.wanted << " in "
       << name(c.scales.format) << " given " << c.inverse_scales.wanted << " statistics "
       << c.counts;
  return text.str();
}

}  // namespace samebits
