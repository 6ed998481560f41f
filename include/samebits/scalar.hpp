// Functions on one value: convert, encode, decode and classify codes. constexpr, host and device.
// This header is the public interface to numerics/.
//
// A code is the unsigned integer that stores a value: storage_t<F>, or std::uint64_t if the format
// is known only at run time. Bits beyond the format's own are ignored.
#pragma once

#include <cstdint>

#include "numerics/bits/classify.hpp"
#include "numerics/bits/convert.hpp"
#include "numerics/bits/random.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

/// A converted value and the events of its conversion.
struct converted {
  std::uint64_t code;
  bool inexact;   ///< a finite value changed
  bool overflow;  ///< a finite value, rounded with unbounded exponent, exceeds max finite
};

/// Converts one code between formats known at run time (contract §2 to §4).
///
/// @param from  format of `code`
/// @param to  format of the result
/// @param code  the code to convert
/// @param rule  rounding, overflow and NaN rules
/// @param random  read only by stochastic rounding: the K random bits, count in 1..32, value <
///   2^count. The result is undefined for other counts. Callers check values that users provide.
/// @returns the code, and whether the conversion was inexact or overflowed
SAMEBITS_HD constexpr converted convert_code(format_id from, format_id to, std::uint64_t code,
                                             const cast_rule& rule = {},
                                             const random_bits& random = {}) {
  const auto r = numerics::convert_any(spec_of(from), spec_of(to), rule, code, random);
  return {r.code, r.inexact, r.overflow};
}

/// Converts one code between formats known at compile time.
///
///   static_assert(convert_code<format_id::e4m3, format_id::fp32>(0x43E80000) == 0x7E);  // 464
template <format_id To, format_id From>
SAMEBITS_HD constexpr storage_t<To> convert_code(storage_t<From> code, const cast_rule& rule = {},
                                                 const random_bits& random = {}) {
  return static_cast<storage_t<To>>(
      numerics::convert_any(spec_of(From), spec_of(To), rule, code, random).code);
}

/// Returns the code of a binary32 value, rounded once.
template <format_id To>
SAMEBITS_HD constexpr storage_t<To> encode(float value, const cast_rule& rule = {},
                                           const random_bits& random = {}) {
  return convert_code<To, format_id::fp32>(__builtin_bit_cast(std::uint32_t, value), rule, random);
}

/// Returns the code of a binary64 value, rounded once (never through binary32).
template <format_id To>
SAMEBITS_HD constexpr storage_t<To> encode(double value, const cast_rule& rule = {},
                                           const random_bits& random = {}) {
  return convert_code<To, format_id::fp64>(__builtin_bit_cast(std::uint64_t, value), rule, random);
}

/// Returns the value of a code as a float. The value is exact for every format but fp64, which is
/// rounded to nearest even. A NaN is canonical.
template <format_id From>
SAMEBITS_HD constexpr float decode(storage_t<From> code) {
  return __builtin_bit_cast(float, convert_code<format_id::fp32, From>(code));
}

/// Returns the exact value of a code. A NaN is canonical.
SAMEBITS_HD constexpr double decode_double(format_id from, std::uint64_t code) {
  return __builtin_bit_cast(double, convert_code(from, format_id::fp64, code).code);
}

enum class number_class : std::uint8_t { zero, subnormal, normal, infinite, nan };
template <>
inline constexpr auto table_of<number_class> =
    enum_table<number_class::nan>({"zero", "subnormal", "normal", "infinite", "nan"});

SAMEBITS_HD constexpr number_class classify(format_id f, std::uint64_t code) {
  const format_spec s = spec_of(f);
  const numerics::code_parts p = numerics::split(s, code);
  if (p.is_nan) return number_class::nan;
  if (p.magnitude > numerics::max_finite(s)) return number_class::infinite;
  if (s.special == specials::scale) return number_class::normal;
  if (p.magnitude == 0) return number_class::zero;
  return (p.magnitude >> s.mantissa_bits) == 0 ? number_class::subnormal : number_class::normal;
}

SAMEBITS_HD constexpr bool is_nan(format_id f, std::uint64_t code) {
  return numerics::split(spec_of(f), code).is_nan;
}
SAMEBITS_HD constexpr bool is_finite(format_id f, std::uint64_t code) {
  return classify(f, code) < number_class::infinite;
}
/// Returns the sign bit; false for e8m0 and for the NaN of fnuz formats, which have no sign.
SAMEBITS_HD constexpr bool is_negative(format_id f, std::uint64_t code) {
  return numerics::split(spec_of(f), code).negative;
}

/// Returns the code of the largest finite value.
SAMEBITS_HD constexpr std::uint64_t max_finite(format_id f) {
  return numerics::max_finite(spec_of(f)) << spec_of(f).padding_bits;
}
/// Returns the code of the smallest positive normal value; for e8m0 its smallest value, 2^-127.
SAMEBITS_HD constexpr std::uint64_t min_normal(format_id f) {
  const format_spec s = spec_of(f);
  return s.special == specials::scale ? 0 : std::uint64_t{1} << (s.mantissa_bits + s.padding_bits);
}
/// Returns the code of the smallest positive value.
SAMEBITS_HD constexpr std::uint64_t min_positive(format_id f) {
  const format_spec s = spec_of(f);
  return s.special == specials::scale ? 0 : std::uint64_t{1} << s.padding_bits;
}
/// Returns the code of the canonical NaN (contract §2); max finite in e2m1, e2m3 and e3m2, which
/// have no NaN.
SAMEBITS_HD constexpr std::uint64_t canonical_nan(format_id f) {
  return numerics::canonical_nan(spec_of(f));
}

/// Return the codes of the next value above and below (contract §5). Beyond max finite lies Inf; in
/// a format without Inf, NaN; in a format without NaN, max finite again. The value next to ±0 is
/// the smallest value. The value next to the smallest value is a zero of its sign.
SAMEBITS_HD constexpr std::uint64_t next_up(format_id f, std::uint64_t code) {
  return numerics::next_up(spec_of(f), code);
}
SAMEBITS_HD constexpr std::uint64_t next_down(format_id f, std::uint64_t code) {
  return numerics::next_down(spec_of(f), code);
}

/// Returns the K random bits (1 <= K <= 32) of element `index` for (seed, stream): Philox4x32-10,
/// contract §3. Array calls use index = offset + row * pitch + column.
SAMEBITS_HD constexpr std::uint32_t random_word(std::uint64_t seed, std::uint64_t stream,
                                                std::uint64_t index, int k = 32) {
  return numerics::random_word(seed, stream, index, k);
}

}  // namespace samebits
