// The exponents at which a format is normal, and the exponents of a tensor as a column chart.
#pragma once

#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/output.hpp"

namespace fpinspect {

enum class band : std::uint8_t { outside, subnormal, normal, mixed };

/// The exponent range of a format.
struct format_range {
  int minimum;  ///< exponent of the smallest positive value
  int min_normal;
  int maximum;  ///< exponent of max finite

  explicit format_range(format_id format)
      : minimum(exponent_at(format, min_positive(format))),
        min_normal(exponent_at(format, samebits::min_normal(format))),
        maximum(exponent_at(format, max_finite(format))) {}

  [[nodiscard]] band binade(int exponent) const {
    if (exponent < minimum || exponent > maximum) return band::outside;
    return exponent < min_normal ? band::subnormal : band::normal;
  }

 private:
  static int exponent_at(format_id format, std::uint64_t code) {
    return exponent_of(decode_double(format, code));
  }
};

/// The chart as text. Each line is at most as wide as the terminal and ends with a newline. Empty
/// if there are no counts. A column is one binade, or 2, 4, 8, ... binades if the chart would be
/// too wide.
///
/// @param counts  number of elements by floor(log2(|x|))
std::string histogram(const std::map<int, std::uint64_t>& counts,
                      std::span<const format_id> formats, const terminal& term);

/// The mark of a band, `times` in a row, or another text in its place; in the band's colour.
std::string marked(band what, int times, const terminal& term, std::string_view other = {});

/// The legend of the marks below the chart: one line with a newline.
std::string histogram_legend(const terminal& term);

}  // namespace fpinspect
