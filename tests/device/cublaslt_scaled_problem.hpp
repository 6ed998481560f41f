// Scaled FP8 products for the witness of cuBLASLt: random scales, samples of them, recordings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/cublaslt_operands.hpp"
#include "samebits/samebits.hpp"

namespace samebits::device_tests {

struct shape {
  std::int64_t m, n, k;
};

/// What has a scale of its own in an operand [lines, K].
enum class tiling : std::uint8_t { whole, line, line_by_128, square_of_128 };

constexpr const char* name_of(tiling t) {
  switch (t) {
    case tiling::whole: return "whole";
    case tiling::line: return "line";
    case tiling::line_by_128: return "line_by_128";
    case tiling::square_of_128: return "square_of_128";
  }
  return "";
}

/// Of A; that of B is turned.
constexpr tile_shape tile_of(tiling t) {
  switch (t) {
    case tiling::line: return {1, 0};
    case tiling::line_by_128: return {1, 128};
    case tiling::square_of_128: return {128, 128};
    default: return {0, 0};
  }
}

constexpr bool is_along_k(tiling t) {
  return t == tiling::line_by_128 || t == tiling::square_of_128;
}

struct mode {
  const char* name;
  format_id a, w;
  tiling a_tiles, w_tiles;
  bool fast = false;
  int exponent = 0;  ///< of the scales, more or less

  [[nodiscard]] bool scaled_along_k() const { return is_along_k(a_tiles) || is_along_k(w_tiles); }
  [[nodiscard]] scale_order order() const {
    const tile_shape w_tile = tile_of(w_tiles);
    return cublaslt_order(tile_of(a_tiles), {w_tile.cols, w_tile.rows});
  }
  [[nodiscard]] accumulator sum() const {
    return accumulator::tensor_core(tensor_unit::hopper_wgmma, fast && !scaled_along_k() ? 0 : 128);
  }
};

constexpr std::int64_t tiles_of_128(std::int64_t count) { return (count + 127) / 128; }

/// Scales of an operand, as the library lays them out, and one for each line and tile of K.
struct random_scales {
  std::vector<float> library;
  std::vector<float> by_line;  ///< [lines, along]
  std::int64_t along;          ///< tiles along K
};

/// 24 bits of significand, 2^(exponent - 3) to 2^(exponent + 4); where `signs`, an eighth is
/// negative, and the last line.
inline random_scales draw_scales(tiling tiles, std::int64_t lines, std::int64_t k,
                                 std::uint64_t seed, bool signs, int exponent) {
  random_scales s;
  s.along = is_along_k(tiles) ? tiles_of_128(k) : 1;
  const std::int64_t lines_of_tile = tiles == tiling::whole           ? lines
                                     : tiles == tiling::square_of_128 ? 128
                                                                      : 1;
  // single lines: [tile of K][line]; square tiles: [tile of lines][tile of K, in fours]
  const bool square = tiles == tiling::square_of_128;
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

inline std::vector<std::byte> bytes_of(const std::vector<float>& x) {
  std::vector<std::byte> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  return bytes;
}

/// Some rows and columns of a product, with scales for every line.
struct part {
  std::vector<std::int64_t> rows, cols;
  std::vector<std::byte> a, w;
  std::vector<std::byte> a_scales, w_scales;  ///< fp32 [lines, tiles along K]
};

/// Operands and scales of a product.
struct problem {
  problem(const mode& h, const shape& s) : how(h), size(s) {
    a = draw(h.a, s.m * s.k, 1);
    w = draw(h.w, s.n * s.k, 2);
    // zeros under negative scales: what the first tile's sum is added to shows in their sign
    if (s.m >= 16) std::memset(a.data() + (s.m - 1) * s.k, 0, static_cast<std::size_t>(s.k));
    a_scales = draw_scales(h.a_tiles, s.m, s.k, 3, true, h.exponent);
    w_scales = draw_scales(h.w_tiles, s.n, s.k, 4, false, h.exponent);
  }

  [[nodiscard]] part sampled(std::int64_t maximum) const {
    part p;
    p.rows = sample(size.m, maximum);
    p.cols = sample(size.n, maximum);
    const auto line = static_cast<std::size_t>(size.k);
    const auto scale_line = [](const random_scales& s) {
      return static_cast<std::size_t>(s.along) * sizeof(float);
    };
    p.a = lines_of(a, p.rows, line);
    p.w = lines_of(w, p.cols, line);
    p.a_scales = lines_of(bytes_of(a_scales.by_line), p.rows, scale_line(a_scales));
    p.w_scales = lines_of(bytes_of(w_scales.by_line), p.cols, scale_line(w_scales));
    return p;
  }

  mode how;
  shape size;
  std::vector<std::byte> a, w;
  random_scales a_scales, w_scales;
};

inline std::vector<float> gathered(const std::vector<float>& d, const part& p, std::int64_t n) {
  std::vector<float> some;
  for (const std::int64_t i : p.rows) {
    for (const std::int64_t j : p.cols) some.push_back(d[static_cast<std::size_t>(i * n + j)]);
  }
  return some;
}

inline void write_lines(std::FILE* file, char key, const std::vector<std::byte>& all,
                        std::size_t lines, std::size_t unit) {
  const std::size_t bytes = all.size() / lines;
  for (std::size_t l = 0; l < lines; ++l) {
    std::fprintf(file, "%c", key);
    for (std::size_t i = 0; i < bytes; i += unit) {
      std::uint32_t word = 0;
      std::memcpy(&word, all.data() + l * bytes + i, unit);
      std::fprintf(file, unit == 1 ? (i == 0 ? " %02X" : "%02X") : " %08X", word);
    }
    std::fprintf(file, "\n");
  }
}

/// Eight rows and columns of a result; tests/golden/README.md describes the lines.
inline void record(const char* path, const problem& of, const std::string& by, std::size_t version,
                   const std::vector<float>& d) {
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) throw std::runtime_error("cannot write the recording");
  const part p = of.sampled(8);
  const auto number = [](std::int64_t x) { return std::to_string(x); };
  const std::string text = "# cuBLASLt " + std::to_string(version) + ": " + of.how.name + ", " +
                           number(of.size.m) + " x " + number(of.size.n) + " x " +
                           number(of.size.k) + ", " + by + "\nproduct " +
                           std::string(name(of.how.a)) + " " + std::string(name(of.how.w)) + " " +
                           std::to_string(p.rows.size()) + " " + std::to_string(p.cols.size()) +
                           " " + number(of.size.k) + " " + number(of.how.sum().promotion) + " " +
                           name_of(of.how.a_tiles) + " " + name_of(of.how.w_tiles) + "\n";
  std::fputs(text.c_str(), file);
  write_lines(file, 'a', p.a, p.rows.size(), 1);
  write_lines(file, 'w', p.w, p.cols.size(), 1);
  write_lines(file, 's', p.a_scales, p.rows.size(), 4);
  write_lines(file, 't', p.w_scales, p.cols.size(), 4);
  write_lines(file, 'd', bytes_of(gathered(d, p, of.size.n)), p.rows.size(), 4);
  std::fclose(file);
}

}  // namespace samebits::device_tests
