// Matrices that recipes are recorded on, made in integers; inputs.py makes the same bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "samebits/core/format.hpp"

namespace samebits::golden {

struct fields {
  int exponent_bits;
  int bits;                               ///< of the mantissa
  std::span<const std::int64_t> special;  ///< magnitudes near which scales change their behaviour
};

inline constexpr std::array<std::int64_t, 7> special_fp32 = {
    0x38D1B717, 0x2EDBE6FF, 0x2B8CBCCC, 0x3B000000, 0x03E00000, 0x04600000, 0x00800000};
inline constexpr std::array<std::int64_t, 7> special_bf16 = {0x38D1, 0x2EDB, 0x2B8C, 0x3B00,
                                                             0x03E0, 0x0460, 0x0080};
inline constexpr std::array<std::int64_t, 6> special_fp16 = {0x068E, 0x1800, 0x0400,
                                                             0x0002, 0x5F00, 0x3C00};

constexpr fields fields_of(format_id f) {
  if (f == format_id::fp32) return {8, 23, special_fp32};
  if (f == format_id::bf16) return {8, 7, special_bf16};
  return {5, 10, special_fp16};
}

enum class profile : std::uint8_t { spread, middle, ties, edges, nonfinite };

/// Throws std::invalid_argument for a name that is none.
inline profile profile_named(std::string_view name) {
  if (name == "spread") return profile::spread;
  if (name == "middle") return profile::middle;
  if (name == "ties") return profile::ties;
  if (name == "edges") return profile::edges;
  if (name == "nonfinite") return profile::nonfinite;
  throw std::invalid_argument("profile: expected spread, middle, ties, edges or nonfinite");
}

/// The index-th word of splitmix64.
constexpr std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// One element: its word and that of its tile without their sign bits.
struct draw {
  fields f;
  std::int64_t element;
  std::int64_t tile;
  bool leads;  ///< whether it is the first of its tile

  [[nodiscard]] constexpr std::int64_t mask() const { return (std::int64_t{1} << f.bits) - 1; }
  [[nodiscard]] constexpr std::int64_t mantissa() const { return element & mask(); }
  [[nodiscard]] constexpr std::int64_t top_exponent() const {
    return (std::int64_t{1} << f.exponent_bits) - 2;
  }
  [[nodiscard]] constexpr std::int64_t largest() const {
    return (top_exponent() << f.bits) | mask();
  }
  [[nodiscard]] constexpr std::int64_t drop() const {
    return std::countr_zero(static_cast<std::uint64_t>(((element >> 24) & 0xFFFFF) | 0x100000));
  }
  [[nodiscard]] constexpr std::int64_t nudge() const { return ((tile >> 40) & 0xFFFFF) % 5 - 2; }
  [[nodiscard]] constexpr std::int64_t random_exponent() const {
    return 1 + (tile & 0xFFFF) % top_exponent();
  }
  [[nodiscard]] constexpr std::int64_t kind() const { return ((tile >> 16) & 0xFFF) % 12; }

  /// The magnitude of those fields; an exponent below 1 shifts the mantissa out.
  [[nodiscard]] constexpr std::int64_t assemble(std::int64_t exponent, std::int64_t m) const {
    if (exponent >= 1) return (exponent << f.bits) | m;
    return m >> std::min<std::int64_t>(1 - exponent, 40);
  }
  [[nodiscard]] constexpr std::int64_t falling(std::int64_t top, std::int64_t m) const {
    return ((element >> 48) & 63) == 0 ? 0 : assemble(top - drop(), m);
  }
  [[nodiscard]] constexpr std::int64_t led(std::int64_t leader) const {
    return leads ? leader : falling((leader >> f.bits) - 1, mantissa());
  }
};

constexpr std::int64_t edge_magnitude(const draw& d) {
  const auto pick = static_cast<std::size_t>((d.tile >> 28) & 0xFFF) % d.f.special.size();
  const std::int64_t small = (d.tile >> 20) & d.mask();
  switch (d.kind()) {
    case 3: return d.leads ? 1 : 0;
    case 4: return d.mantissa();
    case 5: return d.led(std::max<std::int64_t>(d.f.special[pick] + d.nudge(), 0));
    case 6: return d.led(d.largest() - (d.nudge() + 2));
    case 7: return d.led((d.random_exponent() << d.f.bits) + d.nudge());
    case 8: return ((d.tile >> 8) & 0x7FFFFFFF) % (d.largest() + 1);
    case 9: return ((d.element >> 8) & 0x7FFFFFFF) % (d.largest() + 1);
    case 10: return d.leads ? d.assemble(d.random_exponent(), d.mantissa()) : 0;
    case 11: return d.leads ? small : small >> d.drop();
    default: return 0;
  }
}

constexpr std::int64_t middle_magnitude(const draw& d) {
  const std::int64_t bias = (std::int64_t{1} << (d.f.exponent_bits - 1)) - 1;
  return d.falling(bias - 10 + (d.tile & 0xFFFF) % 21, d.mantissa());
}

constexpr std::int64_t nonfinite_magnitude(const draw& d) {
  const std::int64_t infinite = (d.top_exponent() + 1) << d.f.bits;
  const std::int64_t nan = infinite | d.mantissa() | 1;
  const std::int64_t kind = ((d.tile >> 16) & 0xFFF) % 9;
  if (kind == 6) return nan;
  if (kind == 7) return infinite;
  if (kind == 8) return middle_magnitude(d);
  if (((d.element >> 54) & 15) != 0) return kind < 3 ? middle_magnitude(d) : 0;
  if (kind % 3 == 0) return nan;
  if (kind % 3 == 1) return infinite;
  return ((d.element >> 60) & 1) == 0 ? nan : infinite;
}

constexpr std::int64_t magnitude(profile p, const draw& d) {
  switch (p) {
    case profile::spread: return d.falling(d.random_exponent(), d.mantissa());
    case profile::middle: return middle_magnitude(d);
    case profile::ties: {
      const std::int64_t coarse = ~((std::int64_t{1} << (d.f.bits - 4)) - 1);
      const std::int64_t near_448 =
          (d.random_exponent() << d.f.bits) | (std::int64_t{3} << (d.f.bits - 2));
      return d.leads ? near_448 + d.nudge()
                     : d.falling(d.random_exponent() - 1, d.mantissa() & coarse);
    }
    case profile::nonfinite: return nonfinite_magnitude(d);
    case profile::edges: break;
  }
  return edge_magnitude(d);
}

struct random_matrix {
  format_id format = format_id::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  profile shape = profile::spread;
  std::int64_t tile_rows = 1;
  std::int64_t tile_cols = 128;
  std::uint64_t seed = 0;
};

/// Bit patterns, row-major; little-endian, 4 bytes each for fp32, else 2.
inline std::vector<std::uint8_t> draw_matrix(const random_matrix& m) {
  const fields f = fields_of(m.format);
  const int width = f.exponent_bits + f.bits;
  const std::size_t bytes = width == 31 ? 4 : 2;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(m.rows * m.cols) * bytes);
  const std::int64_t per_row = (m.cols + m.tile_cols - 1) / m.tile_cols;
  constexpr std::uint64_t low = 0x7FFFFFFFFFFFFFFFu;
  for (std::int64_t part = 0; part < m.rows * per_row; ++part) {  // the elements of a row in a tile
    const std::int64_t r = part / per_row, first = part % per_row * m.tile_cols;
    const auto of_tile = static_cast<std::uint64_t>(r / m.tile_rows * per_row + part % per_row);
    const std::uint64_t tile_word = word_at(~m.seed, of_tile);
    for (std::int64_t c = first; c < std::min(first + m.tile_cols, m.cols); ++c) {
      const auto index = static_cast<std::uint64_t>(r * m.cols + c);
      const std::uint64_t word = word_at(m.seed, index);
      const draw d = {f, static_cast<std::int64_t>(word & low),
                      static_cast<std::int64_t>(tile_word & low),
                      r % m.tile_rows == 0 && c == first};
      std::uint64_t sign = word >> 63;
      if (m.shape == profile::edges && d.kind() < 2) sign = static_cast<std::uint64_t>(d.kind());
      const std::uint64_t bits =
          static_cast<std::uint64_t>(magnitude(m.shape, d)) | (sign << width);
      for (std::size_t b = 0; b < bytes; ++b) {
        out[index * bytes + b] = static_cast<std::uint8_t>(bits >> (8 * b));
      }
    }
  }
  return out;
}

}  // namespace samebits::golden
