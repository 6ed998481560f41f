// Formats: one constexpr row each. All other properties of a format are derived from its row in
// numerics/bits/layout.hpp and asserted there.
//
// Bits, most significant first (s sign, e exponent, m mantissa, 0 written as 0 and ignored on
// read):
//
//   fp64      s eeeeeeeeeee m{52}          tf32      s eeeeeeee mmmmmmmmmm 0{13}
//   fp32      s eeeeeeee m{23}             e3m2      00 s eee mm
//   fp16      s eeeee mmmmmmmmmm           e2m3      00 s ee mmm
//   bf16      s eeeeeeee mmmmmmm           e2m1      0000 s ee m
//   e4m3      s eeee mmm                   e4m3fnuz  s eeee mmm
//   e5m2      s eeeee mm                   e5m2fnuz  s eeeee mm
//                                          e8m0      eeeeeeee
//
// Sources: IEEE 754-2019 §3.6 (fp16, fp32, fp64); OCP OFP8 1.0 (e4m3, e5m2); OCP MX 1.0 (e3m2,
// e2m3, e2m1, e8m0); arXiv 2206.02915 (fnuz); PTX ISA, cvt (bf16, tf32).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/config.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

enum class format_id : std::uint8_t {
  fp64,
  fp32,
  tf32,
  fp16,
  bf16,
  e4m3,
  e5m2,
  e3m2,
  e2m3,
  e2m1,
  e4m3fnuz,
  e5m2fnuz,
  e8m0,
};

inline constexpr int format_count = 13;

/// Meaning of the codes above the finite values.
enum class specials : std::uint8_t {
  ieee,   ///< top exponent: mantissa 0 is Inf, all others are NaN
  fn,     ///< no Inf; only the all-ones magnitude is NaN
  none,   ///< neither Inf nor NaN; every code is finite
  fnuz,   ///< no Inf, no -0; NaN is the code of -0
  scale,  ///< e8m0: no sign, no zero, no Inf; NaN is all ones
};
template <>
inline constexpr auto table_of<specials> = enum_table<specials::scale>({"ieee", "fn", "none",
                                                                        "fnuz", "scale"});

/// Definition of a format.
struct format_spec {
  const char* name;
  int exponent_bits;
  int mantissa_bits;  ///< stored bits, without the implicit bit
  int bias;
  specials special;
  int storage_bits;  ///< width of the integer that holds one code: 8, 16, 32 or 64
  int padding_bits;  ///< low bits below the mantissa, written 0 and ignored on read (tf32)
};

namespace detail {
struct format_table {
  format_spec rows[format_count];
};

SAMEBITS_INLINE constexpr format_table make_format_table() {
  return {{
      // name      E   M   bias  specials         storage padding
      {"fp64", 11, 52, 1023, specials::ieee, 64, 0},
      {"fp32", 8, 23, 127, specials::ieee, 32, 0},
      {"tf32", 8, 10, 127, specials::ieee, 32, 13},
      {"fp16", 5, 10, 15, specials::ieee, 16, 0},
      {"bf16", 8, 7, 127, specials::ieee, 16, 0},
      {"e4m3", 4, 3, 7, specials::fn, 8, 0},
      {"e5m2", 5, 2, 15, specials::ieee, 8, 0},
      {"e3m2", 3, 2, 3, specials::none, 8, 0},
      {"e2m3", 2, 3, 1, specials::none, 8, 0},
      {"e2m1", 2, 1, 1, specials::none, 8, 0},
      {"e4m3fnuz", 4, 3, 8, specials::fnuz, 8, 0},
      {"e5m2fnuz", 5, 2, 16, specials::fnuz, 8, 0},
      {"e8m0", 8, 0, 127, specials::scale, 8, 0},
  }};
}

// At namespace scope, because g++ copies a function-local table on every call with a run-time
// format.
inline constexpr format_table host_format_table = make_format_table();
}  // namespace detail

/// Returns the definition of a format.
SAMEBITS_INLINE constexpr format_spec spec_of(format_id id) {
#if defined(SAMEBITS_DEVICE_CODE)
  constexpr detail::format_table table = detail::make_format_table();
  return table.rows[static_cast<int>(id)];
#else
  return detail::host_format_table.rows[static_cast<int>(id)];
#endif
}

/// Returns the format's name in code, on the command line, in files and in errors.
constexpr std::string_view name(format_id id) { return spec_of(id).name; }

/// Returns the i-th format, 0 <= i < format_count.
constexpr format_id format_at(int i) { return static_cast<format_id>(i); }

namespace detail {

/// A format's name in other libraries and file formats, in lower case.
struct format_alias {
  std::string_view text;
  format_id format;
};
/// `float8_e4m3` is missing on purpose: in ml_dtypes this name means another format, with
/// infinities.
inline constexpr format_alias format_aliases[] = {
    {"float64", format_id::fp64},
    {"double", format_id::fp64},
    {"f64", format_id::fp64},
    {"float32", format_id::fp32},
    {"float", format_id::fp32},
    {"single", format_id::fp32},
    {"f32", format_id::fp32},
    {"tensorfloat32", format_id::tf32},
    {"float16", format_id::fp16},
    {"half", format_id::fp16},
    {"f16", format_id::fp16},
    {"bfloat16", format_id::bf16},
    {"e4m3fn", format_id::e4m3},
    {"float8_e4m3fn", format_id::e4m3},
    {"fp8_e4m3fn", format_id::e4m3},
    {"fp8_e4m3", format_id::e4m3},
    {"f8_e4m3fn", format_id::e4m3},
    {"f8_e4m3", format_id::e4m3},
    {"float8_e5m2", format_id::e5m2},
    {"fp8_e5m2", format_id::e5m2},
    {"f8_e5m2", format_id::e5m2},
    {"e3m2fn", format_id::e3m2},
    {"float6_e3m2fn", format_id::e3m2},
    {"fp6_e3m2", format_id::e3m2},
    {"f6_e3m2", format_id::e3m2},
    {"e2m3fn", format_id::e2m3},
    {"float6_e2m3fn", format_id::e2m3},
    {"fp6_e2m3", format_id::e2m3},
    {"f6_e2m3", format_id::e2m3},
    {"e2m1fn", format_id::e2m1},
    {"float4_e2m1fn", format_id::e2m1},
    {"fp4_e2m1", format_id::e2m1},
    {"f4_e2m1", format_id::e2m1},
    {"f4", format_id::e2m1},
    {"float8_e4m3fnuz", format_id::e4m3fnuz},
    {"fp8_e4m3fnuz", format_id::e4m3fnuz},
    {"f8_e4m3fnuz", format_id::e4m3fnuz},
    {"float8_e5m2fnuz", format_id::e5m2fnuz},
    {"fp8_e5m2fnuz", format_id::e5m2fnuz},
    {"f8_e5m2fnuz", format_id::e5m2fnuz},
    {"e8m0fnu", format_id::e8m0},
    {"ue8m0", format_id::e8m0},
    {"float8_e8m0fnu", format_id::e8m0},
    {"f8_e8m0", format_id::e8m0},
};

/// Returns whether `text` equals `lower` in any case; `lower` is in lower case.
constexpr bool is_in_any_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool upper = text[i] >= 'A' && text[i] <= 'Z';
    if ((upper ? static_cast<char>(text[i] - 'A' + 'a') : text[i]) != lower[i]) return false;
  }
  return true;
}

/// Returns the text without a leading module name: torch., ml_dtypes., numpy., np. or jnp.
constexpr std::string_view without_module(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return text;
  for (const std::string_view module : {"torch", "ml_dtypes", "numpy", "np", "jnp"}) {
    if (text.substr(0, dot) == module) return text.substr(dot + 1);
  }
  return text;
}

}  // namespace detail

/// Returns the format with this name, or nothing. Upper and lower case are equivalent.
///
/// @param text  name(); a name of torch, NumPy or ml_dtypes, with or without the module
///   ("torch.float8_e4m3fn", "bfloat16", "half"); or a name of .safetensors ("F8_E4M3")
constexpr std::optional<format_id> find_format(std::string_view text) {
  const std::string_view wanted = detail::without_module(text);
  for (int i = 0; i < format_count; ++i) {
    if (detail::is_in_any_case(wanted, name(format_at(i)))) return format_at(i);
  }
  for (const detail::format_alias& alias : detail::format_aliases) {
    if (detail::is_in_any_case(wanted, alias.text)) return alias.format;
  }
  return std::nullopt;
}

namespace detail {
template <int Bits>
struct storage_of;
template <>
struct storage_of<8> {
  using type = std::uint8_t;
};
template <>
struct storage_of<16> {
  using type = std::uint16_t;
};
template <>
struct storage_of<32> {
  using type = std::uint32_t;
};
template <>
struct storage_of<64> {
  using type = std::uint64_t;
};
}  // namespace detail

/// The unsigned integer that holds one code of the format.
template <format_id F>
using storage_t = typename detail::storage_of<spec_of(F).storage_bits>::type;

/// Returns the bytes of one stored code.
SAMEBITS_INLINE constexpr int storage_bytes(format_id id) { return spec_of(id).storage_bits / 8; }

}  // namespace samebits
