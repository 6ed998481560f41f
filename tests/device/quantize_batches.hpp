// The batches of device.quantize_many: what is random in each, and how many cover every
// combination.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/even_draw.hpp"
#include "samebits/quantize.hpp"

namespace samebits::support {

enum class content : std::uint8_t { any_bits, normal, wide, spans };
inline constexpr std::string_view content_names[] = {"any bits", "normal", "wide exponents",
                                                     "spans of specials"};

/// A matrix and how it is quantized.
struct batch {
  std::uint64_t number = 0;
  format_id from = format_id::bf16, to = format_id::e4m3;
  content kind = content::normal;
  std::int64_t rows = 0, cols = 0;
  bool transposed = false;
  bool counts = false;  ///< statistics
  quantize_options options;
};

/// Draws batches. Every `round` of them holds each tile by each rule and rounding once, and each
/// two values of any two other options together.
class batch_draws {
 public:
  static constexpr tile_shape tiles[] = {{1, 128}, {128, 128}, {128, 1}, {1, 32}};
  static constexpr int bits[] = {0, 8, 16, 32};  ///< 0: nearest even
  static constexpr std::uint64_t round =
      std::size(tiles) * enum_count<scale_rule> * std::size(bits);

  /// The next batch, of about `elements` elements.
  batch next(std::int64_t elements) {
    if (number_ % round == 0) draws_ = even_draw();
    batch b;
    b.number = number_++;
    std::mt19937_64 random(b.number + 90);
    draws_.begin();
    const std::size_t tile = b.number % std::size(tiles);
    const std::size_t rule = b.number / std::size(tiles) % enum_count<scale_rule>;
    const std::size_t rounding_bits =
        b.number / (std::size(tiles) * enum_count<scale_rule>) % std::size(bits);
    draws_.fix("tile", tile, std::size(tiles));
    draws_.fix("rule", rule, enum_count<scale_rule>);
    draws_.fix("rounding", rounding_bits, std::size(bits));
    constexpr format_id sources[] = {format_id::bf16, format_id::fp16, format_id::fp32};
    constexpr format_id targets[] = {format_id::e4m3, format_id::e5m2};
    constexpr std::int64_t widths[] = {4096, 2432, 4101, 1024};
    b.from = sources[draws_.draw("source", std::size(sources))];
    b.to = targets[draws_.draw("target", std::size(targets))];
    b.kind = draws_.draw_as<content>("content", std::size(content_names));
    b.cols = widths[draws_.draw("columns", std::size(widths))];
    b.rows = std::max<std::int64_t>(128, (elements + b.cols - 1) / b.cols);
    b.transposed = draws_.draw("transposed", 2) != 0;
    b.counts = draws_.draw("statistics", 2) != 0;
    b.options.tile = tiles[tile];
    b.options.scale = static_cast<scale_rule>(rule);
    b.options.nonfinite = draws_.draw_as<nonfinite>("non-finite policy", enum_count<nonfinite>);
    b.options.overflow = draws_.draw_as<overflow>("overflow", enum_count<overflow>);
    b.options.eps = draws_.draw("eps", 2) != 0 ? 1e-4f : 0.0f;
    const int k = bits[rounding_bits];
    if (k != 0) b.options.rounding = rounding::stochastic;
    b.options.random = {random(), random(), random() & ~std::uint64_t{15}, std::nullopt,
                        k == 0 ? 16 : k};
    return b;
  }

  /// What no batch of this round has together; empty if nothing.
  [[nodiscard]] std::string missing() const { return draws_.missing(); }

 private:
  even_draw draws_;
  std::uint64_t number_ = 0;
};

inline std::ostream& operator<<(std::ostream& out, const batch& b) {
  out << "batch " << b.number << ": " << name(b.from) << " to " << name(b.to) << " [" << b.rows
      << ", " << b.cols << "], " << content_names[static_cast<std::size_t>(b.kind)] << ", tile "
      << b.options.tile.rows << " x " << b.options.tile.cols << ", " << name(b.options.scale)
      << ", " << name(b.options.nonfinite) << ", " << name(b.options.rounding);
  if (b.options.rounding == rounding::stochastic) out << " K = " << b.options.random.bits;
  return out << (b.transposed ? ", row-wise and transposed" : "")
             << (b.counts ? ", statistics" : "");
}

}  // namespace samebits::support
