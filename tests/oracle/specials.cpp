// NaN, infinity and overflow policies, one function per sentence of contract §2 and §4.
#include "oracle/specials.hpp"

#include <stdexcept>

namespace samebits::oracle {
namespace {

std::uint64_t max_result(const format& to, bool negative) {
  return with_sign(to, negative, to.max_finite);
}

/// Inf where the format has it, else the NaN, else max finite.
std::uint64_t beyond_finite(const format& to, bool negative, const cast_rule& rule) {
  if (to.infinity) return with_sign(to, negative, *to.infinity);
  if (to.canonical_nan) return nan_result(to, negative, rule);
  return max_result(to, negative);
}

}  // namespace

std::uint64_t with_sign(const format& to, bool negative, std::uint64_t magnitude_code) {
  if (!negative || to.sign_bits == 0) return magnitude_code;
  if (magnitude_code == 0 && to.zero == zeros::positive_only) return 0;
  return magnitude_code + (std::uint64_t{1} << (to.code_bits - 1));
}

std::uint64_t nan_result(const format& to, bool negative, const cast_rule& rule) {
  if (!to.canonical_nan) return to.max_finite;
  const bool nan_has_sign = to.nan == nan_codes::ieee || to.nan == nan_codes::magnitude_ones;
  const bool keep = rule.nan == nan_policy::preserve_sign && nan_has_sign;
  return with_sign(to, keep && negative, *to.canonical_nan);
}

std::uint64_t infinite_result(const format& to, bool negative, const cast_rule& rule) {
  if (rule.overflow == overflow::saturate) return max_result(to, negative);
  return beyond_finite(to, negative, rule);
}

std::uint64_t overflow_result(const format& to, bool negative, const cast_rule& rule) {
  // e8m0 reads magnitudes only (contract §4), so its direction is that of a positive value.
  const bool sign_for_direction = to.sign_bits == 1 && negative;
  if (rule.overflow != overflow::ieee || keeps_finite(rule.rounding, sign_for_direction)) {
    return max_result(to, negative);
  }
  return beyond_finite(to, negative, rule);
}

bool goes_away(rounding mode, int to_half, bool q_is_odd, bool negative) {
  switch (mode) {
    case rounding::nearest_even: return to_half > 0 || (to_half == 0 && q_is_odd);
    case rounding::nearest_away: return to_half >= 0;
    case rounding::toward_zero: return false;
    case rounding::upward: return !negative;
    case rounding::downward: return negative;
    case rounding::to_odd: return !q_is_odd;
    case rounding::stochastic: break;
  }
  throw std::invalid_argument("oracle: rule.rounding is not a deterministic rounding value");
}

bool keeps_finite(rounding mode, bool negative) {
  return mode != rounding::stochastic && !goes_away(mode, 1, true, negative);
}

void require_valid(const cast_rule& rule) {
  if (static_cast<int>(rule.rounding) >= enum_count<rounding>) {
    throw std::invalid_argument("oracle: rule.rounding is not a rounding value");
  }
  if (static_cast<int>(rule.overflow) >= enum_count<overflow>) {
    throw std::invalid_argument("oracle: rule.overflow is not an overflow value");
  }
  if (static_cast<int>(rule.nan) >= enum_count<nan_policy>) {
    throw std::invalid_argument("oracle: rule.nan is not a nan_policy value");
  }
}

}  // namespace samebits::oracle
