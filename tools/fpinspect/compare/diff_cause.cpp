// Why a code or a scale differs: implementation.
#include "fpinspect/compare/diff_cause.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Upper bound of the relative error of a binary32 number after one product and one quotient.
constexpr double slack = 0x1p-20;

double value_of_code(format_id format, std::uint8_t code) {
  return std::bit_cast<double>(samebits::convert_code(format, format_id::fp64, code).code);
}

bool is_special(float x) { return !std::isfinite(x); }

/// Distance of two positive numbers in binary32 codes.
std::int64_t ulps_apart(float a, float b) {
  return std::abs(std::int64_t{std::bit_cast<std::int32_t>(a)} - std::bit_cast<std::int32_t>(b));
}

constexpr std::int64_t few_ulps = 4;

using interval = code_cells::interval;

bool meet(const interval& a, const interval& b) { return a.low <= b.high && b.low <= a.high; }

}  // namespace

std::string_view name(cause why) {
  switch (why) {
    case cause::scale_ulp: return "scale_ulp";
    case cause::tie: return "tie";
    case cause::policy: return "policy";
    case cause::nan: return "nan";
    case cause::saturation: return "saturation";
    case cause::unexplained: return "unexplained";
  }
  return "?";
}

code_cells::code_cells(format_id format, bool stochastic)
    : largest_(static_cast<std::uint8_t>(samebits::max_finite(format))), stochastic_(stochastic) {
  for (std::uint8_t code = 0; code <= largest_; ++code) {
    values_[code] = value_of_code(format, code);
  }
  // The value that the code after the largest one would have.
  values_[largest_ + 1u] = 2 * values_[largest_] - values_[largest_ - 1u];
}

bool code_cells::is_nan_or_inf(std::uint8_t code) const { return (code & 0x7F) > largest_; }

code_cells::interval code_cells::of(std::uint8_t code, double scale, bool open) const {
  const std::size_t i = code & 0x7Fu;
  const double at = values_[i];
  const double above = values_[i + 1];
  const double below = i == 0 ? -above : values_[i - 1];
  const double share = stochastic_ ? 1.0 : 0.5;
  interval cell = {at - (at - below) * share, at + (above - at) * share};
  if (open && i == largest_) cell.high = infinite;
  cell.low *= scale;
  cell.high *= scale;
  cell.low -= std::abs(cell.low) * slack;
  cell.high += std::abs(cell.high) * slack;
  if (code >= 0x80) cell = {-cell.high, -cell.low};
  return cell;
}

bool can_be_one(const code_cells& a, const coded_element& in_a, const code_cells& b,
                const coded_element& in_b, const std::optional<double>& x) {
  const interval cell_a = a.of(in_a.code, static_cast<double>(in_a.scale), true);
  const interval cell_b = b.of(in_b.code, static_cast<double>(in_b.scale), true);
  if (!x) return meet(cell_a, cell_b);
  const interval element = {*x, *x};
  return meet(cell_a, element) && meet(cell_b, element);
}

cause cause_of_codes(const code_cells& a, const coded_element& in_a, const code_cells& b,
                     const coded_element& in_b, const std::optional<double>& x, bool same_rules) {
  if (same_rules) return cause::unexplained;
  if (a.is_nan_or_inf(in_a.code) || b.is_nan_or_inf(in_b.code) || is_special(in_a.scale) ||
      is_special(in_b.scale) || (x && !std::isfinite(*x))) {
    return cause::nan;
  }
  if (!can_be_one(a, in_a, b, in_b, x)) return cause::unexplained;
  if (a.is_largest(in_a.code) || b.is_largest(in_b.code)) {
    const interval cell_a = a.of(in_a.code, static_cast<double>(in_a.scale), false);
    const interval cell_b = b.of(in_b.code, static_cast<double>(in_b.scale), false);
    if (!meet(cell_a, cell_b)) return cause::saturation;
  }
  const std::int64_t apart = ulps_apart(in_a.scale, in_b.scale);
  const int steps = std::abs((in_a.code & 0x7F) - (in_b.code & 0x7F));
  if (apart == 0 && steps == 1) return cause::tie;
  if (apart != 0 && apart <= few_ulps && steps == 1) return cause::scale_ulp;
  return cause::policy;
}

cause cause_of_scales(float a, float b, bool explained, bool special, bool same_rules) {
  if (same_rules) return cause::unexplained;
  if (is_special(a) || is_special(b) || special) return cause::nan;
  if (!explained) return cause::unexplained;
  return ulps_apart(a, b) <= few_ulps ? cause::scale_ulp : cause::policy;
}

}  // namespace fpinspect
