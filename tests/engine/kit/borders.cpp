// Borders of roundings, by bisection of the source codes.
#include "engine/kit/borders.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

std::uint64_t sign_bit(format_id f) {
  const auto code_of = [f](double x) {
    return convert_code(format_id::fp64, f, std::bit_cast<std::uint64_t>(x)).code;
  };
  return code_of(1.0) ^ code_of(-1.0);
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

/// Adds the first code of each span of one result in (low, high]. Results are in order there.
void add_changes(const conversion_under_test& c, std::uint64_t low, std::uint64_t of_low,
                 std::uint64_t high, std::uint64_t of_high, code_list& firsts) {
  if (of_low == of_high) return;
  if (high - low == 1) {
    firsts.push_back(high);
    return;
  }
  const std::uint64_t middle = low + (high - low) / 2;
  const std::uint64_t of_middle = converted_code(c, middle, 0);
  add_changes(c, low, of_low, middle, of_middle, firsts);
  add_changes(c, middle, of_middle, high, of_high, firsts);
}

}  // namespace

code_list codes_around_changes(const conversion_under_test& c) {
  const format_spec from = spec_of(c.from);
  const int low_bits = from.mantissa_bits + from.padding_bits;
  const std::uint64_t inf = ((std::uint64_t{1} << from.exponent_bits) - 1) << low_bits;
  const std::uint64_t payloads = (std::uint64_t{1} << low_bits) - 1;
  const std::uint64_t last = ~std::uint64_t{0} >> (64 - from.storage_bits);
  code_list firsts, codes, nans;
  for (const std::uint64_t sign : {std::uint64_t{0}, sign_bit(c.from)}) {
    firsts.insert(firsts.end(), {sign, sign + inf});
    for (std::uint64_t low = 0, high = 1; low < inf;) {  // binade by binade
      add_changes(c, sign + low, converted_code(c, sign + low, 0), sign + high,
                  converted_code(c, sign + high, 0), firsts);
      low = high;
      high = (high >> low_bits << low_bits) + (std::uint64_t{1} << low_bits);
    }
    for (int bit = 0; bit < low_bits; ++bit) {
      const std::uint64_t payload = std::uint64_t{1} << bit;
      nans.insert(nans.end(), {sign + inf + payload, sign + inf + (payloads ^ payload)});
    }
  }
  std::sort(firsts.begin(), firsts.end());
  for (const std::uint64_t first : firsts) {
    const std::uint64_t end = first + std::min<std::uint64_t>(2, last - first);
    std::uint64_t code = first - std::min<std::uint64_t>(2, first);
    if (!codes.empty()) code = std::max(code, codes.back() + 1);
    for (; code <= end; ++code) codes.push_back(code);
  }
  std::sort(nans.begin(), nans.end());
  code_list all;
  std::set_union(codes.begin(), codes.end(), nans.begin(), nans.end(), std::back_inserter(all));
  return all;
}

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
