// Value types: fp16, bf16, e4m3 and e5m2 as C++ types that are stored as their codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>

#include "numerics/arithmetic/arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"

namespace samebits {

/// A value of format F, stored as its code.
///
/// Size, alignment and bytes are those of storage_t<F>, so an array of values is an array of codes.
/// Conversions are explicit. Conversions into F round once, to nearest even with overflow::ieee;
/// encode<F>() accepts other rules.
///
///   samebits::e4m3 x(0.3f);         // 0.3125
///   float y = static_cast<float>(x);
///   samebits::e4m3 z = samebits::e4m3::from_bits(0x7E);  // 448
template <format_id F>
class float_value {
 public:
  using storage = storage_t<F>;
  static constexpr format_id format = F;

  float_value() = default;
  SAMEBITS_HD constexpr explicit float_value(float value) : bits_(encode<F>(value)) {}
  SAMEBITS_HD constexpr explicit float_value(double value) : bits_(encode<F>(value)) {}
  /// Converts an int, rounded once: binary64 holds every int exactly.
  SAMEBITS_HD constexpr explicit float_value(int value) : float_value(static_cast<double>(value)) {}
  /// Converts a value of another format, rounded once.
  template <format_id G>
  requires(G != F) SAMEBITS_HD constexpr explicit float_value(float_value<G> other)
      : bits_(convert_code<F, G>(other.bits())) {}

  /// Returns the value with this code.
  SAMEBITS_HD static constexpr float_value from_bits(storage bits) {
    float_value v{};
    v.bits_ = bits;
    return v;
  }
  [[nodiscard]] SAMEBITS_HD constexpr storage bits() const { return bits_; }

  SAMEBITS_HD constexpr explicit operator float() const { return decode<F>(bits_); }
  SAMEBITS_HD constexpr explicit operator double() const { return decode_double(F, bits_); }
  /// Returns false only for ±0.
  SAMEBITS_HD constexpr explicit operator bool() const {
    return classify(F, bits_) != number_class::zero;
  }

  /// Flips the sign bit, also of a NaN (contract §2).
  SAMEBITS_HD constexpr float_value operator-() const {
    return from_bits(static_cast<storage>(numerics::negate(spec_of(F), bits_)));
  }

  /// Each operator rounds once, to nearest even with overflow::ieee. The functions of
  /// arithmetic.hpp accept other rules and destinations, and return flags.
  friend SAMEBITS_HD constexpr float_value operator+(float_value a, float_value b) {
    return rounded<operation::add>(a, b);
  }
  friend SAMEBITS_HD constexpr float_value operator-(float_value a, float_value b) {
    return rounded<operation::sub>(a, b);
  }
  friend SAMEBITS_HD constexpr float_value operator*(float_value a, float_value b) {
    return rounded<operation::mul>(a, b);
  }
  friend SAMEBITS_HD constexpr float_value operator/(float_value a, float_value b) {
    return rounded<operation::div>(a, b);
  }
  SAMEBITS_HD constexpr float_value& operator+=(float_value other) { return *this = *this + other; }
  SAMEBITS_HD constexpr float_value& operator-=(float_value other) { return *this = *this - other; }
  SAMEBITS_HD constexpr float_value& operator*=(float_value other) { return *this = *this * other; }
  SAMEBITS_HD constexpr float_value& operator/=(float_value other) { return *this = *this / other; }

  /// Compares values as numbers: NaN is unordered, -0 equals +0. There are separate operators
  /// instead of <=>, whose result type is host code only.
  friend SAMEBITS_HD constexpr bool operator==(float_value a, float_value b) {
    return numerics::compare(spec_of(F), a.bits_, b.bits_).equal;
  }
  friend SAMEBITS_HD constexpr bool operator<(float_value a, float_value b) {
    return numerics::compare(spec_of(F), a.bits_, b.bits_).less;
  }
  friend SAMEBITS_HD constexpr bool operator<=(float_value a, float_value b) {
    const auto c = numerics::compare(spec_of(F), a.bits_, b.bits_);
    return c.less || c.equal;
  }
  friend SAMEBITS_HD constexpr bool operator>(float_value a, float_value b) { return b < a; }
  friend SAMEBITS_HD constexpr bool operator>=(float_value a, float_value b) { return b <= a; }

 private:
  template <operation Op>
  SAMEBITS_INLINE static constexpr float_value rounded(float_value a, float_value b) {
    constexpr format_spec spec = spec_of(F);
    static_assert(numerics::has_arithmetic(spec), "arithmetic supports fp16, bf16, e4m3 and e5m2");
    const numerics::input x{spec, a.bits_};
    const numerics::input y{spec, b.bits_};
    return from_bits(
        static_cast<storage>(numerics::compute<Op>(x, y, y, spec, cast_rule{}, 0).code));
  }

  storage bits_;
};

using fp16 = float_value<format_id::fp16>;
using bf16 = float_value<format_id::bf16>;
using e4m3 = float_value<format_id::e4m3>;
using e5m2 = float_value<format_id::e5m2>;

/// Returns the shortest decimal text that reads back as the same code.
template <format_id F>
std::string to_string(float_value<F> v) {
  return to_shortest(F, v.bits());
}

template <format_id F>
std::ostream& operator<<(std::ostream& out, float_value<F> v) {
  return out << to_string(v);
}

/// The format of a C++ element type: float, double and the value types above.
template <class T>
struct format_of;
template <>
struct format_of<float> {
  static constexpr format_id value = format_id::fp32;
};
template <>
struct format_of<double> {
  static constexpr format_id value = format_id::fp64;
};
template <format_id F>
struct format_of<float_value<F>> {
  static constexpr format_id value = F;
};

/// A C++ type whose objects lie in memory as codes of a format.
template <class T>
concept element = requires {
  format_of<T>::value;
};

static_assert(sizeof(fp16) == 2 && sizeof(bf16) == 2 && sizeof(e4m3) == 1 && sizeof(e5m2) == 1);

}  // namespace samebits

// Doxygen cannot read specialisations outside their namespace.
/// @cond
/// Hash of a value: equal values have equal hashes, also the two zeros and all NaNs.
template <samebits::format_id F>
struct std::hash<samebits::float_value<F>> {
  std::size_t operator()(samebits::float_value<F> v) const noexcept {
    switch (samebits::classify(F, v.bits())) {
      case samebits::number_class::zero: return 0;
      case samebits::number_class::nan: return samebits::canonical_nan(F);
      default: return v.bits();
    }
  }
};

/// Numeric limits of a format, derived from its format_spec. round_error is 0.5, as for every
/// rounding to nearest.
template <samebits::format_id F>
class std::numeric_limits<samebits::float_value<F>> {
  using value = samebits::float_value<F>;
  static constexpr samebits::format_spec spec = samebits::spec_of(F);
  static constexpr value code(std::uint64_t bits) {
    return value::from_bits(static_cast<samebits::storage_t<F>>(bits));
  }
  /// Returns floor(n * log10(2)) for small n of either sign.
  static constexpr int decimals(int n) {
    const int product = n * 30103;
    return product >= 0 ? product / 100000 : -((-product + 99999) / 100000);
  }
  static constexpr int max_code_exponent() {
    const auto max = samebits::numerics::max_finite(spec);
    return static_cast<int>(max >> spec.mantissa_bits) - spec.bias + 1;
  }

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = spec.special == samebits::specials::ieee;
  static constexpr bool has_quiet_NaN = spec.special != samebits::specials::none;
  static constexpr bool has_signaling_NaN = false;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool is_iec559 = F == samebits::format_id::fp16;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr int radix = 2;
  static constexpr int digits = spec.mantissa_bits + 1;
  static constexpr int digits10 = decimals(spec.mantissa_bits);
  static constexpr int max_digits10 = decimals(digits) + 2;
  static constexpr int min_exponent = 2 - spec.bias;  ///< min() = 2^(min_exponent - 1)
  static constexpr int max_exponent = max_code_exponent();
  static constexpr int min_exponent10 = -decimals(spec.bias - 1);
  static constexpr int max_exponent10 = decimals(max_exponent);
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;

  static constexpr value min() noexcept { return code(samebits::min_normal(F)); }
  static constexpr value max() noexcept { return code(samebits::max_finite(F)); }
  static constexpr value lowest() noexcept { return -max(); }
  static constexpr value epsilon() noexcept {
    return value(1.0 / static_cast<double>(std::uint64_t{1} << spec.mantissa_bits));
  }
  static constexpr value round_error() noexcept { return value(0.5); }
  static constexpr value infinity() noexcept {
    return has_infinity ? code(samebits::numerics::inf_code(spec)) : value{};
  }
  static constexpr value quiet_NaN() noexcept { return code(samebits::canonical_nan(F)); }
  static constexpr value signaling_NaN() noexcept { return quiet_NaN(); }
  static constexpr value denorm_min() noexcept { return code(samebits::min_positive(F)); }
};
/// @endcond
