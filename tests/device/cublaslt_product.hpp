// Products for the tests of cuBLASLt: random operands and scales on the device, and samples of lines,
// which matmul() multiplies on the CPU.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "backends/dispatch/calls/matmul.hpp"
#include "device/device_copy.hpp"
#include "samebits/samebits.hpp"

namespace samebits::device_tests {

using support::device_bytes;
using bytes = std::vector<std::byte>;

struct shape {
  std::int64_t m, n, k;

  [[nodiscard]] std::int64_t multiplications() const { return m * n * k; }
  [[nodiscard]] std::string text() const {
    return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  }
};

/// The parts of an operand [lines, K] that have one scale each: all of it, each line, each 128 elements
/// of a line, each square of 128 x 128.
enum class tiling : std::uint8_t { whole, line, line_by_128, square_of_128 };

constexpr const char* name_of(tiling t) {
  constexpr const char* names[] = {"whole", "line", "line_by_128", "square_of_128"};
  return names[static_cast<int>(t)];
}

/// The tile shape of A's scales; B's has rows and columns exchanged: turned().
constexpr tile_shape tile_of(tiling t) {
  constexpr tile_shape tiles[] = {{0, 0}, {1, 0}, {1, 128}, {128, 128}};
  return tiles[static_cast<int>(t)];
}
constexpr tile_shape turned(tile_shape tile) { return {tile.cols, tile.rows}; }

constexpr bool is_along_k(tiling t) { return t >= tiling::line_by_128; }

/// A kind of product: A [m, k] in rows, or in columns; B [k, n] in columns, as the transpose of
/// weights is, or in rows; D [m, n] in rows; scales of both operands, or none.
struct kind {
  const char* name;
  format_id a, b, d = format_id::fp32;
  bool fast = false, b_rows = false, a_columns = false;
  std::optional<tiling> a_tiles = {}, b_tiles = {};
  int exponent = 0;  ///< of the scales, more or less

  [[nodiscard]] bool scaled_along_k() const {
    return a_tiles && (is_along_k(*a_tiles) || is_along_k(*b_tiles));
  }
  [[nodiscard]] scale_order order() const {
    return cublaslt_order(tile_of(*a_tiles), turned(tile_of(*b_tiles)));
  }
  /// FP8 sums have promotions unless they are fast.
  [[nodiscard]] accumulator sum() const {
    const bool promoted = storage_bytes(a) == 1 && (!fast || scaled_along_k());
    return accumulator::tensor_core(tensor_unit::hopper_wgmma, promoted ? 128 : 0);
  }
};

/// Bell-shaped numbers, the same on every machine.
inline bytes draw(format_id format, std::int64_t count, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t word = random_word(seed, 0, i);
    int sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<int>((word >> (8 * k)) & 0xFF);
    x[i] = static_cast<float>(sum - 510) / 148.0f;
  }
  bytes codes(x.size() * static_cast<std::size_t>(storage_bytes(format)));
  convert(view_of(x.data(), 1, count), view_of_codes(format, codes.data(), 1, count), {}, {{}, 0});
  return codes;
}

constexpr std::int64_t tiles_of_128(std::int64_t count) { return (count + 127) / 128; }

inline bytes bytes_of(const std::vector<float>& x) {
  bytes all(x.size() * sizeof(float));
  std::memcpy(all.data(), x.data(), all.size());
  return all;
}

/// Scales of an operand, as the library lays them out, and one for each line and tile of K.
struct random_scales {
  std::vector<float> library;
  std::vector<float> by_line;  ///< [lines, along]
  std::int64_t along = 1;      ///< tiles along K
};

/// 24 bits of significand, 2^(exponent - 3) to 2^(exponent + 4); where `signs`, an eighth is
/// negative, and the last line.
inline random_scales draw_scales(tiling tiles, std::int64_t lines, std::int64_t k,
                                 std::uint64_t seed, bool signs, int exponent) {
  random_scales s;
  s.along = is_along_k(tiles) ? tiles_of_128(k) : 1;
  const bool square = tiles == tiling::square_of_128;
  const std::int64_t lines_of_tile = tiles == tiling::whole ? lines : square ? 128 : 1;
  // single lines: [tile of K][line]; square tiles: [tile of lines][tile of K, in fours]
  const std::int64_t groups = (lines + lines_of_tile - 1) / lines_of_tile;
  const std::int64_t stride = square ? (s.along + 3) / 4 * 4 : groups;
  s.library.resize(static_cast<std::size_t>(square ? groups * stride : s.along * stride));
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t group = line / lines_of_tile;
    for (std::int64_t t = 0; t < s.along; ++t) {
      const std::uint32_t word = random_word(seed, static_cast<std::uint64_t>(lines + k),
                                             static_cast<std::uint64_t>(group * s.along + t));
      const bool negative = signs && (group == groups - 1 || (word >> 23 & 7) == 0);
      const std::uint32_t bits =
          (word & 0x7FFFFFu) |
          static_cast<std::uint32_t>(exponent + 124 + static_cast<int>((word >> 26) % 7)) << 23 |
          (negative ? 1u << 31 : 0u);
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      s.by_line.push_back(value);
      s.library[static_cast<std::size_t>(square ? group * stride + t : t * stride + group)] = value;
    }
  }
  return s;
}

/// An operand on the host and on the device, and its scales there.
struct operand {
  format_id format;
  std::int64_t lines, k;
  bool by_k;  ///< lies [K, lines]
  std::optional<tiling> tiles;
  bytes codes;
  random_scales scales = {};
  device_bytes codes_gpu = {}, scales_gpu = {};

  operand(format_id f, std::int64_t count, std::int64_t depth, bool turned_in_memory,
          std::optional<tiling> scaled_by, int exponent, bool is_a)
      : format(f),
        lines(count),
        k(depth),
        by_k(turned_in_memory),
        tiles(scaled_by),
        codes(draw(f, count * depth, is_a ? 1 : 2)) {
    // zeros under negative scales: what the first tile's sum is added to shows in their sign
    if (tiles && is_a && lines >= 16) std::fill(codes.end() - k, codes.end(), std::byte{0});
    codes_gpu = device_bytes(codes.data(), codes.size());
    if (!tiles) return;
    scales = draw_scales(*tiles, lines, k, is_a ? 3 : 4, is_a, exponent);
    scales_gpu = device_bytes(scales.library.data(), scales.library.size() * sizeof(float));
  }

  /// [lines, K].
  [[nodiscard]] const_matrix_view on_gpu() const {
    const void* const data = codes_gpu.data();
    return on_device(by_k ? transposed(view_of_codes(format, data, k, lines))
                          : view_of_codes(format, data, lines, k));
  }
  /// As cuBLASLt lays them out.
  [[nodiscard]] const_matrix_view scales_on_gpu() const {
    const bool square = tiles == tiling::square_of_128;
    const std::int64_t rows = tiles == tiling::whole ? 1 : square ? tiles_of_128(lines) : lines;
    const void* const data = scales_gpu.data();
    const_matrix_view v = on_device(
        view_of_codes(format_id::fp32, data, rows, is_along_k(*tiles) ? scales.along : 1));
    v.row_stride = square ? (scales.along + 3) / 4 * 4 : 1;
    v.col_stride = square ? 1 : rows;
    return v;
  }
};

/// Some lines of an operand, with scales for each; none without tiles.
struct some_lines {
  bytes codes, scales;
  const_matrix_view view, view_of_scales;
  tile_shape tile;

  some_lines(const operand& of, const std::vector<std::int64_t>& which)
      : tile{1, of.tiles && is_along_k(*of.tiles) ? 128 : 0} {
    const auto width = static_cast<std::size_t>(storage_bytes(of.format));
    for (const std::int64_t line : which) {
      for (std::int64_t i = 0; i < of.k; ++i) {
        const std::int64_t at = of.by_k ? i * of.lines + line : line * of.k + i;
        const std::byte* const from = &of.codes[static_cast<std::size_t>(at) * width];
        codes.insert(codes.end(), from, from + width);
      }
    }
    const auto count = static_cast<std::int64_t>(which.size());
    const void* data = codes.data();
    view = view_of_codes(of.format, data, count, of.k);
    if (!of.tiles) return;
    const bytes all = bytes_of(of.scales.by_line);
    const std::ptrdiff_t line_bytes = of.scales.along * std::ptrdiff_t{sizeof(float)};
    for (const std::int64_t line : which) {
      const auto first = all.begin() + line * line_bytes;
      scales.insert(scales.end(), first, first + line_bytes);
    }
    data = scales.data();
    view_of_scales = view_of_codes(format_id::fp32, data, count, of.scales.along);
  }
};

/// Some of n numbers, evenly, first and last among them.
inline std::vector<std::int64_t> sample(std::int64_t n, std::int64_t maximum) {
  std::vector<std::int64_t> all;
  const std::int64_t count = std::min(n, maximum);
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(count == 1 ? 0 : i * (n - 1) / (count - 1));
  }
  return all;
}

/// Operands and result of a product on the device; the lines of B are its columns.
struct product {
  product(const kind& h, const shape& s)
      : how(h),
        size(s),
        a(h.a, s.m, s.k, h.a_columns, h.a_tiles, h.exponent, true),
        b(h.b, s.n, s.k, h.b_rows, h.b_tiles, h.exponent, false),
        d_gpu(static_cast<std::size_t>(s.m * s.n * storage_bytes(h.d))) {}

  [[nodiscard]] const_matrix_view a_view() const { return a.on_gpu(); }
  [[nodiscard]] const_matrix_view b_view() const { return transposed(b.on_gpu()); }
  [[nodiscard]] matrix_view d_view() const {
    return on_device(view_of_codes(how.d, static_cast<void*>(d_gpu.data()), size.m, size.n));
  }
  /// The call, without checks.
  [[nodiscard]] backends::matmul_call call() const {
    backends::matmul_call c{};
    c.a = a_view(), c.b = b_view(), c.d = d_view();
    c.sum = how.sum();
    if (!how.a_tiles) return c;
    c.a_scales = {a.scales_on_gpu(), {}, tile_of(*how.a_tiles)};
    c.b_scales = {transposed(b.scales_on_gpu()), {}, turned(tile_of(*how.b_tiles))};
    return c;
  }
  void spoil() { d_gpu.fill(0xFF); }
  [[nodiscard]] bytes result() const { return support::contents_of<std::byte>(d_gpu); }

  kind how;
  shape size;
  operand a, b;
  device_bytes d_gpu;
};

/// Elements that differ, and of them such as differ in the sign of zero alone.
struct differences {
  std::uint64_t all = 0, signs = 0;
};

/// Some rows and columns of a product.
struct part {
  part(const product& p, std::int64_t max_rows, std::int64_t max_cols)
      : of(p),
        rows(sample(p.size.m, max_rows)),
        cols(sample(p.size.n, max_cols)),
        a(p.a, rows),
        b(p.b, cols) {}

  /// The product on the CPU.
  [[nodiscard]] bytes expected(const accumulator& sum, std::optional<scale_order> order) const {
    const auto m = static_cast<std::int64_t>(rows.size());
    const auto n = static_cast<std::int64_t>(cols.size());
    bytes d(static_cast<std::size_t>(m * n * storage_bytes(of.how.d)));
    matmul_options options;
    if (of.how.a_tiles) {
      options.scale_order = order;
      options.a_scales = {a.view_of_scales, a.tile};
      options.b_scales = {transposed(b.view_of_scales), turned(b.tile)};
    }
    matmul(a.view, transposed(b.view), view_of_codes(of.how.d, d.data(), m, n), sum, options,
           {{}, 0});
    return d;
  }
  /// The same elements of a whole result.
  [[nodiscard]] bytes gathered(const bytes& d) const {
    const auto width = static_cast<std::ptrdiff_t>(storage_bytes(of.how.d));
    bytes some;
    for (const std::int64_t i : rows) {
      for (const std::int64_t j : cols) {
        const auto from = d.begin() + (i * of.size.n + j) * width;
        some.insert(some.end(), from, from + width);
      }
    }
    return some;
  }
  [[nodiscard]] std::uint64_t count() const { return rows.size() * cols.size(); }
  [[nodiscard]] differences compared(const bytes& got, const bytes& wanted) const {
    const auto width = static_cast<std::size_t>(storage_bytes(of.how.d));
    const auto value = [&](const bytes& d, std::size_t at) {
      std::uint64_t code = 0;
      std::memcpy(&code, &d[at], width);
      return decode_double(of.how.d, code);
    };
    differences found;
    for (std::size_t at = 0; at < got.size(); at += width) {
      if (std::memcmp(&got[at], &wanted[at], width) == 0) continue;
      ++found.all;
      if (value(got, at) == value(wanted, at)) ++found.signs;
    }
    return found;
  }

  const product& of;
  std::vector<std::int64_t> rows, cols;
  some_lines a, b;
};

/// Rows and columns that are compared: all of a product of at most so many multiply-adds.
inline std::int64_t lines_of(const shape& s, int log2_multiplications) {
  const bool whole = s.multiplications() <= std::int64_t{1} << log2_multiplications;
  return whole ? std::max(s.m, s.n) : 48;
}

inline bool is_hopper() {
  cudaDeviceProp device;
  support::check_cuda(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  return device.major == 9;
}

/// The name of a test of a kind.
inline std::string name_of_kind(const ::testing::TestParamInfo<kind>& tested) {
  std::string text = tested.param.name;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

}  // namespace samebits::device_tests
