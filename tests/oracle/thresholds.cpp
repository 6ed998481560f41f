// Thresholds from the destination's own grid; shares the policies with convert, not its rounding.
#include "oracle/thresholds.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "oracle/exact.hpp"
#include "oracle/specials.hpp"

namespace samebits::oracle {
namespace {

/// Magnitudes at (inclusive) or just above (exclusive) `at` belong to the upper grid point.
struct threshold {
  dyadic at;
  bool inclusive;
};

threshold threshold_between(const dyadic& lower, const dyadic& upper, rounding mode,
                            bool negative) {
  const bool q_is_odd = lower.significand % 2 == 1;
  const auto away = [&](int to_half) { return goes_away(mode, to_half, q_is_odd, negative); };
  if (away(-1)) return {lower, false};
  if (away(1)) return {midpoint(lower, upper), away(0)};
  return {upper, true};
}

/// Magnitude codes of a format in increasing order, numbered from 0.
struct magnitudes {
  const format* of;

  std::uint64_t count() const { return of->max_finite / unit() + 1; }
  std::uint64_t code(std::uint64_t number) const { return number * unit(); }
  dyadic value(std::uint64_t number) const { return decode_magnitude(*of, code(number)); }

 private:
  std::uint64_t unit() const { return std::uint64_t{1} << of->unused_low_bits; }
};

/// The number of the least magnitude at or beyond the threshold, or source.count(); `from` is a
/// number known not to be beyond it.
std::uint64_t smallest_beyond(const magnitudes& source, std::uint64_t from, const threshold& t) {
  std::uint64_t low = from;
  std::uint64_t high = source.count();
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const std::strong_ordering order = compare(source.value(middle), t.at);
    const bool beyond = t.inclusive ? order >= 0 : order > 0;
    if (beyond) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Appends a step; one that starts where the last one starts replaces it.
void append(std::vector<step>& steps, std::uint64_t first, std::uint64_t code) {
  const step next{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(code)};
  if (!steps.empty() && steps.back().first == next.first) steps.pop_back();
  if (steps.empty() || steps.back().code != next.code) steps.push_back(next);
}

std::vector<step> steps_of_sign(const format& from, const format& to, const cast_rule& rule,
                                bool negative) {
  const magnitudes source{&from};
  const magnitudes grid{&to};
  // e8m0 ignores the sign of what it rounds (contract §4).
  const bool rounds_as_negative = negative && to.sign_bits == 1;
  const std::uint64_t start = negative && from.zero == zeros::positive_only ? 1 : 0;

  std::vector<step> steps;
  append(steps, source.code(start), with_sign(to, negative, grid.code(0)));
  std::uint64_t number = start;
  dyadic lower = grid.value(0);
  for (std::uint64_t i = 0; i < grid.count() && number < source.count(); ++i) {
    const bool at_max = i + 1 == grid.count();
    // Beyond max the grid goes on by one more ulp, which stands for every overflow.
    const dyadic upper = at_max ? dyadic{lower.significand + 1, lower.exponent} : grid.value(i + 1);
    number = smallest_beyond(source, number,
                             threshold_between(lower, upper, rule.rounding, rounds_as_negative));
    if (number < source.count()) {
      append(
          steps, source.code(number),
          at_max ? overflow_result(to, negative, rule) : with_sign(to, negative, grid.code(i + 1)));
    }
    lower = upper;
  }
  return steps;
}

std::uint32_t narrow(std::uint64_t code) { return static_cast<std::uint32_t>(code); }

}  // namespace

step_function make_step_function(const format& from, const format& to, const cast_rule& rule) {
  require_valid(rule);
  if (rule.rounding == rounding::stochastic) {
    throw std::invalid_argument("oracle::make_step_function: rule.rounding must be deterministic");
  }
  if (from.storage_bits > 32) {
    throw std::invalid_argument("oracle::make_step_function: from is " + std::string(from.name) +
                                ", expected a format of at most 32 bits");
  }
  if (magnitudes{&to}.count() > max_destination_magnitudes) {
    throw std::invalid_argument("oracle::make_step_function: to is " + std::string(to.name) +
                                ", which has too many codes for a table");
  }
  step_function f;
  f.from = &from;
  f.to = &to;
  f.rule = rule;
  f.positive = steps_of_sign(from, to, rule, false);
  if (from.sign_bits == 1) f.negative = steps_of_sign(from, to, rule, true);
  f.pos_inf = narrow(infinite_result(to, false, rule));
  f.neg_inf = narrow(infinite_result(to, true, rule));
  f.pos_nan = narrow(nan_result(to, false, rule));
  f.neg_nan = narrow(nan_result(to, true, rule));
  return f;
}

std::uint64_t evaluate(const step_function& f, std::uint32_t source_code) {
  const format& from = *f.from;
  const std::uint64_t bits = meaningful_bits(from, source_code);
  const std::uint64_t sign_bit = from.sign_bits == 1 ? std::uint64_t{1} << (from.code_bits - 1) : 0;
  const bool negative = sign_bit != 0 && bits >= sign_bit;
  const std::uint64_t magnitude = negative ? bits - sign_bit : bits;

  if (from.infinity && magnitude == *from.infinity) return negative ? f.neg_inf : f.pos_inf;
  if (from.nan == nan_codes::sign_only && negative && magnitude == 0) return f.pos_nan;
  if (magnitude > from.max_finite) return negative ? f.neg_nan : f.pos_nan;

  const std::vector<step>& steps = negative ? f.negative : f.positive;
  const auto after =
      std::upper_bound(steps.begin(), steps.end(), magnitude,
                       [](std::uint64_t value, const step& s) { return value < s.first; });
  return std::prev(after)->code;
}

}  // namespace samebits::oracle
