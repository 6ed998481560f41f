// Borders of stochastic decisions, by bisection of the source codes between two target codes.
#include "borders.hpp"

#include <bit>

#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

std::uint64_t sign_bit(format_id f) {
  const auto code_of = [f](double x) {
    return convert_code(format_id::fp64, f, std::bit_cast<std::uint64_t>(x)).code;
  };
  return code_of(1.0) ^ code_of(-1.0);
}

random_bits random_at(const conversion_under_test& c, std::uint64_t position) {
  const std::uint64_t index = c.random.offset + position;
  return {random_word(c.random.seed, c.random.stream, index, c.random.bits), c.random.bits};
}

/// Returns the source code of a positive finite target code, if the source has its value.
std::optional<std::uint64_t> source_of(const conversion_under_test& c, std::uint64_t target) {
  if (!is_finite(c.to, target)) return std::nullopt;
  const converted source = convert_code(c.to, c.from, target);
  if (source.inexact || !is_finite(c.from, source.code)) return std::nullopt;
  return source.code;
}

/// Returns the border between two neighbouring positive target codes.
std::optional<decision_border> border_between(const conversion_under_test& c,
                                              std::uint64_t position, std::uint64_t lower,
                                              std::uint64_t upper) {
  const auto first = source_of(c, lower);
  const auto last = source_of(c, upper);
  if (!first || !last || *last <= *first + 1) return std::nullopt;
  const random_bits random = random_at(c, position);
  std::uint64_t toward = *first;
  std::uint64_t away = *last;
  while (away - toward > 1) {
    const std::uint64_t middle = toward + (away - toward) / 2;
    const std::uint64_t result =
        convert_code(c.from, c.to, middle, {rounding::stochastic, overflow::saturate}, random).code;
    (result == upper ? away : toward) = middle;
  }
  if (away == *last) return std::nullopt;
  return decision_border{away, toward};
}

}  // namespace

std::optional<decision_border> border_beside(const conversion_under_test& conversion,
                                             std::uint64_t position, std::uint64_t code) {
  const conversion_under_test& c = conversion;
  if (!is_finite(c.from, code)) return std::nullopt;
  const std::uint64_t sign = sign_bit(c.from);
  const std::uint64_t magnitude = code & ~sign;
  const std::uint64_t lower =
      convert_code(c.from, c.to, magnitude, {rounding::toward_zero, overflow::saturate}).code;
  auto border = border_between(c, position, lower, next_up(c.to, lower));
  if (border && sign_bit(c.to) != 0) {
    border->away |= code & sign;
    border->toward |= code & sign;
  }
  return border;
}

std::optional<decision_border> border_of_last_bit(const conversion_under_test& conversion,
                                                  std::uint64_t position) {
  const random_bits random = random_at(conversion, position);
  const std::uint64_t needed = (std::uint64_t{1} << random.count) - random.value;
  const bool is_odd = needed % 2 == 1;
  if (!is_odd ||
      static_cast<int>(std::bit_width(needed)) > spec_of(conversion.from).mantissa_bits + 1) {
    return std::nullopt;
  }
  return border_between(conversion, position, 0, min_positive(conversion.to));
}

}  // namespace samebits::testkit
