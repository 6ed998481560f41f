// The exponents at which a format is normal, subnormal or out of range.
#pragma once

#include <cstdint>

#include "fpinspect/formats/describe.hpp"
#include "samebits/core/format.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {

enum class band : std::uint8_t { outside, subnormal, normal, mixed };

/// The exponent range of a format.
struct format_range {
  int minimum;  ///< exponent of the smallest positive value
  int min_normal;
  int maximum;  ///< exponent of max finite

  explicit format_range(samebits::format_id format)
      : minimum(exponent_at(format, samebits::min_positive(format))),
        min_normal(exponent_at(format, samebits::min_normal(format))),
        maximum(exponent_at(format, samebits::max_finite(format))) {}

  [[nodiscard]] band binade(int exponent) const {
    if (exponent < minimum || exponent > maximum) return band::outside;
    return exponent < min_normal ? band::subnormal : band::normal;
  }

 private:
  static int exponent_at(samebits::format_id format, std::uint64_t code) {
    return exponent_of(samebits::decode_double(format, code));
  }
};

}  // namespace fpinspect
