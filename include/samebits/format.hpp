// The formats: one constexpr row each. Everything else about a format is derived from its row
// (numerics/layout.hpp) and asserted there.
//
// Bit pictures, most significant bit first (s sign, e exponent, m mantissa, 0 written 0 and
// ignored):
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

#include <cstdint>
#include <optional>
#include <string_view>

#include "numerics/config.hpp"

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

/// What the codes beyond the finite values mean.
enum class specials : std::uint8_t {
  ieee,   ///< top exponent: mantissa 0 is Inf, the rest is NaN
  fn,     ///< no Inf; NaN is the all-ones magnitude only
  none,   ///< neither Inf nor NaN; every code is finite
  fnuz,   ///< no Inf, no -0; NaN is the code of -0
  scale,  ///< e8m0: no sign, no zero, no Inf; NaN is all ones
};

/// One format as a data row.
struct format_spec {
  const char* name;
  int exponent_bits;
  int mantissa_bits;  ///< stored ones, without the implicit bit
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

// g++ copies a local table on every call with a format known at run time; this one it reads.
inline constexpr format_table host_format_table = make_format_table();
}  // namespace detail

/// The row of a format.
SAMEBITS_INLINE constexpr format_spec spec_of(format_id id) {
#if defined(SAMEBITS_DEVICE_CODE)
  constexpr detail::format_table table = detail::make_format_table();
  return table.rows[static_cast<int>(id)];
#else
  return detail::host_format_table.rows[static_cast<int>(id)];
#endif
}

/// The format's name as used everywhere: code, command line, files, errors.
constexpr std::string_view name(format_id id) { return spec_of(id).name; }

/// The i-th format, 0 <= i < format_count.
constexpr format_id format_at(int i) { return static_cast<format_id>(i); }

/// The format of that name, or nothing.
constexpr std::optional<format_id> find_format(std::string_view text) {
  for (int i = 0; i < format_count; ++i) {
    if (name(format_at(i)) == text) return format_at(i);
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

/// Bytes of one stored code.
SAMEBITS_INLINE constexpr int storage_bytes(format_id id) { return spec_of(id).storage_bits / 8; }

}  // namespace samebits
