// The tile quantizer of samebits/kernel/device_quantize.cuh in kernels, against quantize() on the
// host.
#include "samebits/kernel/device_quantize.cuh"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "device/device_copy.hpp"
#include "samebits/samebits.hpp"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

using support::check_cuda;
using support::contents_of;
using support::device_bytes;

/// A dense matrix; the element (row, col) is number offset + row * cols + col.
struct matrix {
  const float* x;
  std::int64_t rows, cols;
  std::uint64_t offset;
  std::uint8_t* codes;
  float* scales;
};

/// Tiles of 1 x Width * N, a group of Width lanes each; lanes beyond the tile's end hold nothing.
template <format_id To, int Width, int N>
__global__ void quantize_rows(matrix m, device::tile_options options) {
  const std::int64_t tiles_a_row = (m.cols + Width * N - 1) / (Width * N);
  const std::int64_t tile = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / Width;
  if (tile >= m.rows * tiles_a_row) return;
  const std::int64_t row = tile / tiles_a_row;
  const std::int64_t col = tile % tiles_a_row * Width * N + threadIdx.x % Width * N;
  const std::int64_t left = m.cols - col;
  const int count = left >= N ? N : left > 0 ? static_cast<int>(left) : 0;
  const std::int64_t at = row * m.cols + col;
  float x[N];
  for (int i = 0; i < N; ++i) x[i] = i < count ? m.x[at + i] : __uint_as_float(0x7F800000u);
  const auto q = device::quantize_tile<To, Width>(x, options,
                                                  m.offset + static_cast<std::uint64_t>(at), count);
  for (int i = 0; i < count; ++i) m.codes[at + i] = q.codes[i];
  if (threadIdx.x % Width == 0) m.scales[tile] = q.scale;
}

/// Tiles of 16 x 16, a block of four warps each: the parts combined through shared memory.
template <format_id To>
__global__ void quantize_square_tiles(matrix m, device::tile_options options) {
  __shared__ int amaxes[4];
  const std::int64_t row = std::int64_t{blockIdx.y} * 16 + threadIdx.x / 8;
  const std::int64_t col = std::int64_t{blockIdx.x} * 16 + threadIdx.x % 8 * 2;
  const int count = row >= m.rows || col >= m.cols ? 0 : m.cols - col == 1 ? 1 : 2;
  const std::int64_t at = row * m.cols + col;
  float x[2] = {};
  for (int i = 0; i < count; ++i) x[i] = m.x[at + i];
  const auto part = device::group_amax(device::amax_of(x, options.nonfinite, count));
  amaxes[threadIdx.x / 32] = part;
  __syncthreads();
  int amax = amaxes[0];
  for (int i = 1; i < 4; ++i) amax = amax < amaxes[i] ? amaxes[i] : amax;
  const auto q = device::codes_of<To>(x, device::scale_of<To>(options, amax), options,
                                      m.offset + static_cast<std::uint64_t>(at), count);
  for (int i = 0; i < count; ++i) m.codes[at + i] = q.codes[i];
  if (threadIdx.x == 0) m.scales[blockIdx.y * gridDim.x + blockIdx.x] = q.scale;
}

/// Stretches of one magnitude, of any bits, of zeros, with NaN and Inf.
std::vector<float> elements(std::size_t count) {
  std::mt19937_64 random(11);
  std::vector<float> x(count);
  std::uint64_t kind = 0;
  for (float& value : x) {
    const std::uint64_t r = random();
    if (r % 64 == 0) kind = random();
    auto bits = static_cast<std::uint32_t>(r >> 32);
    if (kind % 8 == 0) bits &= 0x80000000u;
    if (kind % 8 >= 2) {
      const auto exponent =
          static_cast<std::uint32_t>(kind % 8 == 2 ? kind >> 8 & 255 : 110 + (r >> 8) % 30);
      bits = (bits & 0x807FFFFFu) | exponent << 23;
    }
    std::memcpy(&value, &bits, sizeof bits);
  }
  return x;
}

struct shape_case {
  std::int64_t rows, cols;
  tile_shape tile;
  void (*launch)(const matrix& m, format_id to, const device::tile_options& options);
};

template <int Width, int N>
void launch_rows(const matrix& m, format_id to, const device::tile_options& options) {
  const std::int64_t tiles = m.rows * ((m.cols + Width * N - 1) / (Width * N));
  const auto blocks = static_cast<unsigned>((tiles * Width + 127) / 128);
  if (to == format_id::e4m3) {
    quantize_rows<format_id::e4m3, Width, N><<<blocks, 128>>>(m, options);
  } else {
    quantize_rows<format_id::e5m2, Width, N><<<blocks, 128>>>(m, options);
  }
}

void launch_square_tiles(const matrix& m, format_id to, const device::tile_options& options) {
  const dim3 blocks(static_cast<unsigned>((m.cols + 15) / 16),
                    static_cast<unsigned>((m.rows + 15) / 16));
  if (to == format_id::e4m3) {
    quantize_square_tiles<format_id::e4m3><<<blocks, 128>>>(m, options);
  } else {
    quantize_square_tiles<format_id::e5m2><<<blocks, 128>>>(m, options);
  }
}

class device_results {
 public:
  device_results(const std::vector<float>& x, const shape_case& c)
      : shape_(scales_shape(c.rows, c.cols, c.tile)),
        x_(x.data(), x.size() * sizeof(float)),
        codes_(x.size()),
        scales_(static_cast<std::size_t>(shape_.rows * shape_.cols) * sizeof(float)) {}

  void run(const shape_case& c, format_id to, const device::tile_options& options,
           std::uint64_t offset) {
    codes_.fill(0x55);
    scales_.fill(0x55);
    c.launch(
        {x_.as<float>(), c.rows, c.cols, offset, codes_.as<std::uint8_t>(), scales_.as<float>()},
        to, options);
    check_cuda(cudaGetLastError(), "launch");
    codes = contents_of<std::uint8_t>(codes_);
    scales = contents_of<float>(scales_);
  }

 private:
  matrix_shape shape_;
  device_bytes x_, codes_, scales_;

 public:
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
};

void expect_the_bytes_of_quantize(const shape_case& c) {
  const std::vector<float> x = elements(static_cast<std::size_t>(c.rows * c.cols));
  device_results got(x, c);
  std::vector<std::uint8_t> codes(x.size());
  const matrix_shape s = scales_shape(c.rows, c.cols, c.tile);
  std::vector<float> scales(static_cast<std::size_t>(s.rows * s.cols));
  std::mt19937_64 random(5);
  constexpr int bits[] = {0, 8, 16, 32, 13, 5};  // 0: nearest even
  constexpr int rules = 2 * one_level_scale_rules * enum_count<nonfinite>;
  support::thinned_cases cases(5);
  for (int n = 0; n < rules * static_cast<int>(std::size(bits)); ++n) {
    if (cases.leaves_out()) continue;
    const auto to = n % 2 == 0 ? format_id::e4m3 : format_id::e5m2;
    quantize_options o{.tile = c.tile,
                       .scale = static_cast<scale_rule>(n / 2 % one_level_scale_rules),
                       .eps = random() % 3 == 0 ? 1e-4f : 0.0f,
                       .nonfinite = static_cast<nonfinite>(n / (2 * one_level_scale_rules) %
                                                           enum_count<nonfinite>)};
    if (random() % 4 == 0) o.upper_bound = 0.5f;
    o.overflow = static_cast<overflow>(random() % 3);
    o.nan = static_cast<nan_policy>(random() % 2);
    const int k = bits[n / rules];
    if (k != 0) o.rounding = rounding::stochastic;
    o.random = {random(), random(), random(), std::nullopt, k == 0 ? 16 : k};
    quantize(view_of(x.data(), c.rows, c.cols),
             {.codes = view_of_codes(to, codes.data(), c.rows, c.cols),
              .scales = view_of(scales.data(), s.rows, s.cols)},
             o);
    got.run(c, to,
            {.scale = o.scale,
             .nonfinite = o.nonfinite,
             .eps = o.eps,
             .upper_bound = o.upper_bound,
             .cast = {o.rounding, o.overflow, o.nan},
             .seed = o.random.seed,
             .stream = o.random.stream,
             .random_bits = o.random.bits},
            o.random.offset);
    ASSERT_EQ(std::memcmp(got.scales.data(), scales.data(), scales.size() * 4), 0) << n;
    ASSERT_EQ(got.codes, codes) << n;
  }
}

TEST(DeviceQuantize, AWarpHoldsATileOf128) {
  expect_the_bytes_of_quantize({67, 1024, {1, 128}, launch_rows<32, 4>});
  expect_the_bytes_of_quantize({67, 1003, {1, 128}, launch_rows<32, 4>});
}
TEST(DeviceQuantize, SixteenLanesHoldATileOf128) {
  expect_the_bytes_of_quantize({67, 1003, {1, 128}, launch_rows<16, 8>});
}
TEST(DeviceQuantize, EightLanesHoldATileOf32) {
  expect_the_bytes_of_quantize({67, 1003, {1, 32}, launch_rows<8, 4>});
}
TEST(DeviceQuantize, OneThreadHoldsATileOf16) {
  expect_the_bytes_of_quantize({67, 1003, {1, 16}, launch_rows<1, 16>});
}
TEST(DeviceQuantize, ABlockHoldsATileOf16By16) {
  expect_the_bytes_of_quantize({67, 1003, {16, 16}, launch_square_tiles});
}

}  // namespace
}  // namespace samebits
