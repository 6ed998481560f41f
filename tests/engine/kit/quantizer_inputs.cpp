// Random matrices tile by tile.
#include "engine/kit/quantizer_inputs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

using support::below;
using support::word_source;

enum class tile_kind {
  ordinary,
  ties,
  scaled_ties,
  zeros,
  subnormals,
  outlier,
  nonfinite,
  any,
  count
};

/// Returns 0, 1, a small size, or a size that differs by at most 1 from a multiple of the tile's.
std::int64_t random_size(std::int64_t tile, std::int64_t max, const word_source& next) {
  const std::int64_t unit = tile == 0 ? 32 : tile;
  std::int64_t size = below(2, next);
  if (below(16, next) != 0) {
    size = below(3, next) == 0 ? 1 + below(2 * unit + 6, next)
                               : unit * (1 + below(3, next)) + below(3, next) - 1;
  }
  return std::min(std::max<std::int64_t>(size, 0), max);
}

std::uint64_t code_of(format_id format, double x) {
  return convert_code(format_id::fp64, format, std::bit_cast<std::uint64_t>(x)).code;
}

/// Returns a random number whose magnitude lies in the 8 binades below 2^exponent.
double random_number(int exponent, bool few_bits, const word_source& next) {
  const double mantissa = few_bits ? static_cast<double>(next() % 32) / 32
                                   : static_cast<double>(next() >> 11) * 0x1p-53;
  const double x = std::ldexp(1 + mantissa, exponent - 1 - static_cast<int>(next() % 8));
  return next() % 2 == 0 ? x : -x;
}

/// Generates the elements of one tile.
class tile_source {
 public:
  tile_source(const quantizer_under_test& quantizer, const domain_codes& domain, tile_kind kind,
              const word_source& next)
      : quantizer_(quantizer), domain_(domain), next_(next), kind_(kind) {
    const int emax = quantizer.from == format_id::fp16 ? 14 : 120;
    exponent_ = next() % 2 == 0 ? static_cast<int>(next() % 24) - 12
                                : static_cast<int>(below(2 * emax, next)) - emax;
  }

  std::uint64_t element() {
    const std::uint64_t code = candidate();
    return domain_.contains(code) ? code : domain_.any_code(next_);
  }

 private:
  std::uint64_t candidate() {
    const format_id f = quantizer_.from;
    switch (kind_) {
      case tile_kind::zeros: return code_of(f, next_() % 2 == 0 ? 0.0 : -0.0);
      case tile_kind::subnormals: return next_() % min_normal(f);
      case tile_kind::any: return domain_.any_code(next_);
      case tile_kind::scaled_ties: return code_of(f, scaled_tie());
      case tile_kind::nonfinite: {
        if (next_() % 32 != 0) break;
        const double special = next_() % 2 == 0 ? HUGE_VAL : NAN;
        return code_of(f, next_() % 2 == 0 ? special : -special);
      }
      case tile_kind::outlier:
        if (next_() % 64 == 0) return code_of(f, random_number(exponent_ + 12, false, next_));
        break;
      default: break;
    }
    return code_of(f, random_number(exponent_, kind_ == tile_kind::ties, next_));
  }

  /// Returns first the tile's amax, and then numbers that the tile's scale brings near a tie of the
  /// codes. There, scale rules that differ in the last bit give different codes.
  double scaled_tie() {
    const format_id to = quantizer_.to;
    const double max = decode_double(to, max_finite(to));
    if (amax_ == 0) {  // rounded to the source, as the quantizer sees it
      const std::uint64_t code =
          code_of(quantizer_.from, std::abs(random_number(exponent_, false, next_)));
      amax_ = decode_double(quantizer_.from, code);
      return amax_;
    }
    const std::uint64_t lower = next_() % max_finite(to);
    const double tie = (decode_double(to, lower) + decode_double(to, lower + 1)) / 2;
    return (next_() % 2 == 0 ? tie : -tie) * amax_ / max;
  }

  const quantizer_under_test& quantizer_;
  const domain_codes& domain_;
  const word_source& next_;
  tile_kind kind_;
  int exponent_;
  double amax_ = 0;  ///< amax of a tile of scaled ties; 0 before the first element
};

}  // namespace

trial random_matrix(const quantizer_under_test& quantizer, const domain_codes& domain,
                    std::int64_t max_elements, std::uint64_t number, const word_source& next) {
  trial m;
  m.cols = random_size(quantizer.options.tile.cols, max_elements, next);
  m.rows = random_size(quantizer.options.tile.rows,
                       max_elements / std::max<std::int64_t>(m.cols, 1), next);
  m.codes.resize(static_cast<std::size_t>(m.rows * m.cols));
  const matrix_shape tile = tile_extent(m, quantizer.options.tile);
  std::uint64_t kind = number;  // kind of the first tile; random for all others
  for (std::int64_t row = 0; row < m.rows; row += tile.rows) {
    for (std::int64_t col = 0; col < m.cols; col += tile.cols) {
      constexpr auto kinds = static_cast<std::uint64_t>(tile_kind::count);
      tile_source source(quantizer, domain, static_cast<tile_kind>(kind % kinds), next);
      kind = next();
      for (std::int64_t r = row; r < std::min(m.rows, row + tile.rows); ++r) {
        for (std::int64_t c = col; c < std::min(m.cols, col + tile.cols); ++c) {
          m.codes[static_cast<std::size_t>(r * m.cols + c)] = source.element();
        }
      }
    }
  }
  return m;
}

}  // namespace samebits::testkit
