// Random matrices tile by tile.
#include "engine/kit/quantizer_inputs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/core/scaled_matrix.hpp"
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

  /// Returns an element that may lie outside of the domain.
  std::uint64_t element() {
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

 private:
  /// Returns first the tile's amax, and then numbers that the tile's scale brings to a tie of the
  /// codes, or beside a tie. There, scale rules that differ in the last bit give different codes.
  double scaled_tie() {
    const format_id to = quantizer_.to;
    if (scale_ == 0) {
      const std::uint64_t code =
          code_of(quantizer_.from, std::abs(random_number(exponent_, false, next_)));
      const auto m = support::scale_by_definition(view_of_codes(quantizer_.from, &code, 1, 1), to,
                                                  quantizer_.options);
      scale_ = static_cast<double>(std::bit_cast<float>(m.scales[0].dequantization_scale));
      return decode_double(quantizer_.from, code);
    }
    const std::uint64_t lower = next_() % max_finite(to);
    const double tie = (decode_double(to, lower) + decode_double(to, lower + 1)) / 2;
    return (next_() % 2 == 0 ? tie : -tie) * scale_;
  }

  const quantizer_under_test& quantizer_;
  const domain_codes& domain_;
  const word_source& next_;
  tile_kind kind_;
  int exponent_;
  double scale_ = 0;  ///< of a tile of scaled ties; 0 before the first element
};

}  // namespace

matrix_shape random_shape(const quantizer_under_test& quantizer, std::int64_t max_elements,
                          const word_source& next) {
  const std::int64_t cols = random_size(quantizer.options.tile.cols, max_elements, next);
  const std::int64_t max_rows = max_elements / std::max<std::int64_t>(cols, 1);
  return {random_size(quantizer.options.tile.rows, max_rows, next), cols};
}

trial random_matrix(const quantizer_under_test& quantizer, const domain_codes& domain,
                    const matrix_shape& shape, std::uint64_t number, const word_source& next) {
  trial m{shape.rows, shape.cols, {}};
  m.codes.resize(static_cast<std::size_t>(m.rows * m.cols));
  const matrix_shape tile = tile_extent(m, quantizer.options.tile);
  std::uint64_t kind = number;  // kind of the first tile; random for all others
  for (std::int64_t row = 0; row < m.rows; row += tile.rows) {
    for (std::int64_t col = 0; col < m.cols; col += tile.cols) {
      constexpr auto kinds = static_cast<std::uint64_t>(tile_kind::count);
      tile_source source(quantizer, domain, static_cast<tile_kind>(kind % kinds), next);
      // Scaled ties alone show rules that differ in the last bit, and many tiles of them do not.
      kind = below(3, next) == 0 ? static_cast<std::uint64_t>(tile_kind::scaled_ties) : next();
      for (std::int64_t r = row; r < std::min(m.rows, row + tile.rows); ++r) {
        for (std::int64_t c = col; c < std::min(m.cols, col + tile.cols); ++c) {
          m.codes[static_cast<std::size_t>(r * m.cols + c)] = source.element();
        }
      }
    }
  }
  domain.prepare(m.codes);
  for (std::uint64_t& code : m.codes) {
    if (!domain.contains(code)) code = domain.any_code(next);
  }
  return m;
}

}  // namespace samebits::testkit
