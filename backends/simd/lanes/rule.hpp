// Rule: turns widths, policies and random field widths of a kernel into constants for the common
// cases.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/dispatch/visit.hpp"
#include "backends/simd/lanes/access.hpp"
#include "numerics/bits/random.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::simd {

SAMEBITS_INLINE constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
SAMEBITS_INLINE constexpr std::int64_t larger(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

/// The policies of a rule as compile-time constants.
template <overflow Overflow, nan_policy Nan>
struct fixed_policy {
  static constexpr samebits::overflow overflow = Overflow;
  static constexpr nan_policy nan = Nan;
};
struct any_policy {
  samebits::overflow overflow;
  nan_policy nan;
};

template <class Policy, overflow Overflow>
inline constexpr bool policy_is =
    std::is_same_v<Policy, fixed_policy<Overflow, nan_policy::canonical>>;

template <format_id F>
SAMEBITS_INLINE fixed_width<spec_of(F).storage_bits> width_of(backends::fixed_format<F>) {
  return {};
}
SAMEBITS_INLINE int width_of(const backends::any_format& format) {
  return format.spec().storage_bits;
}

/// Calls f(width of the random field) with a constant width if the mode is a constant.
template <class Isa, rounding R, class Function>
SAMEBITS_INLINE void with_field(backends::fixed_rounding<R>, int k, const Function& f) {
  if constexpr (R != rounding::stochastic) {
    f(fixed_width<0>{});
  } else if (numerics::field_bits(k) == 32) {
    f(fixed_width<32>{});
  } else if (numerics::field_bits(k) == 16) {
    f(fixed_width<16>{});
  } else {
    f(fixed_width<8>{});
  }
}
template <class Isa, class Function>
SAMEBITS_INLINE void with_field(const backends::any_rounding& mode, int k, const Function& f) {
  f(mode.mode() == rounding::stochastic ? numerics::field_bits(k) : 0);
}

/// Calls f(mode, policy). Both are constants for nearest even and stochastic under the two most
/// common policies. Under other policies the mode is also read at run time.
template <class Isa, class Mode, class Function>
SAMEBITS_INLINE void with_policy(const Mode& mode, const cast_rule& rule, const Function& f) {
  const any_policy any{rule.overflow, rule.nan};
  if constexpr (std::is_same_v<Mode, backends::fixed_rounding<rounding::nearest_even>> ||
                std::is_same_v<Mode, backends::fixed_rounding<rounding::stochastic>>) {
    if (rule.nan == nan_policy::canonical && rule.overflow == overflow::ieee) {
      return f(mode, fixed_policy<overflow::ieee, nan_policy::canonical>{});
    }
    if (rule.nan == nan_policy::canonical && rule.overflow == overflow::saturate) {
      return f(mode, fixed_policy<overflow::saturate, nan_policy::canonical>{});
    }
    f(backends::any_rounding{mode.mode()}, any);
  } else {
    f(mode, any);
  }
}

}  // namespace samebits::simd
