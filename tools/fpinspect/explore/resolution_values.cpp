// The resolution of a format: computation.
#include <algorithm>
#include <cmath>

#include "fpinspect/explore/resolution.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::rounding;

samebits::converted round_to(format_id format, double x, rounding mode) {
  const samebits::cast_rule rule{.rounding = mode};
  return samebits::convert_code(format_id::fp64, format, __builtin_bit_cast(std::uint64_t, x),
                                rule);
}

/// Codes of values >= 0 without padding are consecutive integers, in the order of the values.
std::uint64_t index_of(format_id format, std::uint64_t code) {
  return code >> samebits::spec_of(format).padding_bits;
}
std::uint64_t code_at(format_id format, std::uint64_t index) {
  return index << samebits::spec_of(format).padding_bits;
}

/// The index of the smallest value >= x, for x >= 0; one after the largest value if there is none.
std::uint64_t first_index(format_id format, double x) {
  const std::uint64_t end = index_of(format, samebits::max_finite(format)) + 1;
  if (x > samebits::decode_double(format, samebits::max_finite(format))) return end;
  return index_of(format, round_to(format, x, rounding::upward).code);
}

/// log2 of the distance from a value to the next one; the values must be finite.
int spacing_after(format_id format, std::uint64_t code) {
  const double value = samebits::decode_double(format, code);
  return exponent_of(samebits::decode_double(format, samebits::next_up(format, code)) - value);
}

/// Like spacing_after(), also for the largest value: its binade continues below it.
int spacing_at(format_id format, std::uint64_t code) {
  return spacing_after(
      format, code == samebits::max_finite(format) ? samebits::next_down(format, code) : code);
}

}  // namespace

interval_values values_between(format_id format, double from, double to) {
  const std::uint64_t begin = first_index(format, from);
  const std::uint64_t end = first_index(format, to);
  interval_values values{end - begin, code_at(format, begin), {}};
  for (std::uint64_t index = begin; index < end;) {
    // Values with equal exponent field have equal spacing.
    const std::uint64_t binade = std::uint64_t{1} << samebits::spec_of(format).mantissa_bits;
    const std::uint64_t stop = std::min(end, (index / binade + 1) * binade);
    const double first = samebits::decode_double(format, code_at(format, index));
    const double last = samebits::decode_double(format, code_at(format, stop - 1));
    const int spacing = spacing_at(format, code_at(format, index));
    auto& spacings = values.spacings;
    if (!spacings.empty() &&
        spacings.back().spacing_log2 == spacing) {  // subnormals, first normals
      spacings.back().last = last;
      spacings.back().count += stop - index;
    } else {
      spacings.push_back({first, last, stop - index, spacing});
    }
    index = stop;
  }
  return values;
}

double largest_exact_integer(format_id format) {
  // Bisection for the first value whose distance to the next one is more than 1.
  std::uint64_t low = index_of(format, round_to(format, 1.0, rounding::nearest_even).code);
  std::uint64_t high = index_of(format, samebits::max_finite(format));
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (spacing_after(format, code_at(format, middle)) > 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::floor(samebits::decode_double(format, code_at(format, low)));
}

std::optional<spot> spot_of(format_id format, double x) {
  const samebits::converted below = round_to(format, x, rounding::downward);
  const samebits::converted above = round_to(format, x, rounding::upward);
  const double low = samebits::decode_double(format, below.code);
  const double high = samebits::decode_double(format, above.code);
  if (!(low <= x && x <= high) || !std::isfinite(low) || !std::isfinite(high)) return std::nullopt;
  spot found{below.code, above.code, round_to(format, x, rounding::nearest_even).code,
             std::nullopt};
  if (low != high) {
    found.spacing_log2 = exponent_of(high - low);
  } else if (const auto next = finite_value(format, samebits::next_up(format, below.code));
             next && *next > low) {
    found.spacing_log2 = exponent_of(*next - low);
  }
  return found;
}

rounded_points round_points(format_id format, double from, double to, std::uint64_t points) {
  rounded_points result{points, 0, 0, 0};
  std::uint64_t previous = 0;
  double sum = 0;
  for (std::uint64_t i = 0; i < points; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(points);
    const double x = from + (to - from) * part;
    const std::uint64_t code = round_to(format, x, rounding::nearest_even).code;
    const double rounded = samebits::decode_double(format, code);
    const double error = std::isfinite(rounded) ? std::fabs(rounded - x) : HUGE_VAL;
    if (i == 0 || code != previous) ++result.distinct;
    result.max_error = std::max(result.max_error, error);
    sum += error;
    previous = code;
  }
  result.mean_error = points == 0 ? 0 : sum / static_cast<double>(points);
  return result;
}

}  // namespace fpinspect
