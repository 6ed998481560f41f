// The oracle's own table of the thirteen formats of contract §1, typed from the contract's columns.
//
// Deliberately redundant: max finite, min normal and min subnormal follow from the widths and the
// bias, yet are stated again as codes and powers of two, so that tests can compare every field with
// the library's table and with this oracle's own decoder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace samebits::oracle {

/// Which zeros a format has.
enum class zeros : std::uint8_t {
  both,           ///< +0 and -0
  positive_only,  ///< the code of -0 is a NaN (AMD fnuz)
  none,           ///< every code is a power of two or NaN (e8m0)
};

/// Which codes are NaN.
enum class nan_codes : std::uint8_t {
  ieee,            ///< exponent field all ones, mantissa field not zero
  magnitude_ones,  ///< every bit below the sign is one (OCP e4m3: 7F, FF)
  sign_only,       ///< only the sign bit is set (AMD fnuz: 80)
  all_ones,        ///< FF (e8m0)
  none,
};

/// One row. Codes are unsigned integers; powers of two are given by their exponent.
struct format {
  std::string_view name;
  int sign_bits;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  int storage_bits;  ///< the word that holds a code: 8, 16, 32 or 64
  /// Bits from the sign (or the top exponent bit) down to bit 0; what lies above is ignored on
  /// read.
  int code_bits;
  int unused_low_bits;  ///< written 0 and ignored on read (tf32: 13)
  std::uint64_t max_finite;
  std::uint64_t min_normal;
  int min_normal_exponent;
  std::uint64_t min_subnormal;  ///< e8m0 has no subnormals and repeats its smallest value, code 00
  int min_subnormal_exponent;
  zeros zero;
  std::optional<std::uint64_t> infinity;
  nan_codes nan;
  std::optional<std::uint64_t> canonical_nan;
};

// clang-format off
inline constexpr std::array<format, 13> format_table{{
    // name      S  E   M  bias word code low  max finite               min normal (2^)              min subnormal (2^)  zeros                 Inf                      NaN codes                  canonical NaN
    {"fp64",     1, 11, 52, 1023, 64, 64, 0,  0x7FEFFFFFFFFFFFFFu, 0x0010000000000000u, -1022, 0x1u,    -1074, zeros::both,          0x7FF0000000000000u, nan_codes::ieee,           0x7FFFFFFFFFFFFFFFu},
    {"fp32",     1, 8,  23, 127,  32, 32, 0,  0x7F7FFFFFu,         0x00800000u,         -126,  0x1u,    -149,  zeros::both,          0x7F800000u,         nan_codes::ieee,           0x7FFFFFFFu},
    {"tf32",     1, 8,  10, 127,  32, 32, 13, 0x7F7FE000u,         0x00800000u,         -126,  0x2000u, -136,  zeros::both,          0x7F800000u,         nan_codes::ieee,           0x7FFFE000u},
    {"fp16",     1, 5,  10, 15,   16, 16, 0,  0x7BFFu,             0x0400u,             -14,   0x1u,    -24,   zeros::both,          0x7C00u,             nan_codes::ieee,           0x7FFFu},
    {"bf16",     1, 8,  7,  127,  16, 16, 0,  0x7F7Fu,             0x0080u,             -126,  0x1u,    -133,  zeros::both,          0x7F80u,             nan_codes::ieee,           0x7FFFu},
    {"e4m3",     1, 4,  3,  7,    8,  8,  0,  0x7Eu,               0x08u,               -6,    0x1u,    -9,    zeros::both,          std::nullopt,        nan_codes::magnitude_ones, 0x7Fu},
    {"e5m2",     1, 5,  2,  15,   8,  8,  0,  0x7Bu,               0x04u,               -14,   0x1u,    -16,   zeros::both,          0x7Cu,               nan_codes::ieee,           0x7Fu},
    {"e3m2",     1, 3,  2,  3,    8,  6,  0,  0x1Fu,               0x04u,               -2,    0x1u,    -4,    zeros::both,          std::nullopt,        nan_codes::none,           std::nullopt},
    {"e2m3",     1, 2,  3,  1,    8,  6,  0,  0x1Fu,               0x08u,               0,     0x1u,    -3,    zeros::both,          std::nullopt,        nan_codes::none,           std::nullopt},
    {"e2m1",     1, 2,  1,  1,    8,  4,  0,  0x07u,               0x02u,               0,     0x1u,    -1,    zeros::both,          std::nullopt,        nan_codes::none,           std::nullopt},
    {"e4m3fnuz", 1, 4,  3,  8,    8,  8,  0,  0x7Fu,               0x08u,               -7,    0x1u,    -10,   zeros::positive_only, std::nullopt,        nan_codes::sign_only,      0x80u},
    {"e5m2fnuz", 1, 5,  2,  16,   8,  8,  0,  0x7Fu,               0x04u,               -15,   0x1u,    -17,   zeros::positive_only, std::nullopt,        nan_codes::sign_only,      0x80u},
    {"e8m0",     0, 8,  0,  127,  8,  8,  0,  0xFEu,               0x00u,               -127,  0x0u,    -127,  zeros::none,          std::nullopt,        nan_codes::all_ones,       0xFFu},
}};
// clang-format on

/// The row of that name. The reference stays valid for the life of the program.
inline const format& format_named(std::string_view name) {
  for (const format& row : format_table) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument("oracle::format_named: name is '" + std::string(name) +
                              "', expected one of the thirteen of contract §1");
}

}  // namespace samebits::oracle
