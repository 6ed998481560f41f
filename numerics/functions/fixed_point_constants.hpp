// Fixed point constants: 1 / (2 pi), pi / 4, ln 2 and 1 / ln 2, truncated. Host only.
//
// Source: Machin's formula for pi and the series of 2 artanh(1/3) for ln 2, in integers of 2464
// bits. exhaustive.rotary compares every word with MPFR's constants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/functions/fixed_point.hpp"

namespace samebits::numerics {

inline constexpr int inverse_two_pi_words = 72;
/// 1 / (2 pi), 32 bits a word.
inline constexpr std::uint32_t inverse_two_pi_table[inverse_two_pi_words] = {
    0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770, 0x36D8A566, 0x4F10E410, 0x7F9458EA, 0xF7AEF158,
    0x6DC91B8E, 0x909374B8, 0x01924BBA, 0x82746487, 0x3F877AC7, 0x2C4A69CF, 0xBA208D7D, 0x4BAED121,
    0x3A671C09, 0xAD17DF90, 0x4E64758E, 0x60D4CE7D, 0x272117E2, 0xEF7E4A0E, 0xC7FE25FF, 0xF7816603,
    0xFBCBC462, 0xD6829B47, 0xDB4D9FB3, 0xC9F2C26D, 0xD3D18FD9, 0xA797FA8B, 0x5D49EEB1, 0xFAF97C5E,
    0xCF41CE7D, 0xE294A4BA, 0x9AFED7EC, 0x47E35742, 0x1580CC11, 0xBF1EDAEA, 0xFC33EF08, 0x26BD0D87,
    0x6A78E458, 0x57B986C2, 0x19666157, 0xC5281A10, 0x237FF620, 0x135CC9CC, 0x41818555, 0xB29CEA32,
    0x58389EF0, 0x231AD1F1, 0x0670D9F3, 0x773A024A, 0xA0D6711D, 0xA2E58729, 0xB76BD134, 0x55C6414F,
    0xA97FC1C1, 0x4FDF8CFA, 0x0CB0B793, 0xE60C9F6E, 0xF0CF49BB, 0xDAC797BE, 0x27CE87CD, 0x72BC9FC7,
    0x61FC4864, 0x1F1F091A, 0xBE9BB55D, 0xCB4C10CE, 0xC571852D, 0x674670F0, 0xB12B5053, 0x4B174003,
};

/// pi / 4.
inline constexpr std::uint32_t quarter_pi_table[36] = {
    0xC90FDAA2, 0x2168C234, 0xC4C6628B, 0x80DC1CD1, 0x29024E08, 0x8A67CC74, 0x020BBEA6, 0x3B139B22,
    0x514A0879, 0x8E3404DD, 0xEF9519B3, 0xCD3A431B, 0x302B0A6D, 0xF25F1437, 0x4FE1356D, 0x6D51C245,
    0xE485B576, 0x625E7EC6, 0xF44C42E9, 0xA637ED6B, 0x0BFF5CB6, 0xF406B7ED, 0xEE386BFB, 0x5A899FA5,
    0xAE9F2411, 0x7C4B1FE6, 0x49286651, 0xECE45B3D, 0xC2007CB8, 0xA163BF05, 0x98DA4836, 0x1C55D39A,
    0x69163FA8, 0xFD24CF5F, 0x83655D23, 0xDCA3AD96,
};

/// ln 2.
inline constexpr std::uint32_t ln_2_table[36] = {
    0xB17217F7, 0xD1CF79AB, 0xC9E3B398, 0x03F2F6AF, 0x40F34326, 0x7298B62D, 0x8A0D175B, 0x8BAAFA2B,
    0xE7B87620, 0x6DEBAC98, 0x559552FB, 0x4AFA1B10, 0xED2EAE35, 0xC1382144, 0x27573B29, 0x1169B825,
    0x3E96CA16, 0x224AE8C5, 0x1ACBDA11, 0x317C387E, 0xB9EA9BC3, 0xB136603B, 0x256FA0EC, 0x7657F74B,
    0x72CE87B1, 0x9D6548CA, 0xF5DFA6BD, 0x38303248, 0x655FA187, 0x2F20E3A2, 0xDA2D97C5, 0x0F3FD5C6,
    0x07F4CA11, 0xFB5BFB90, 0x610D30F8, 0x8FE551A2,
};

/// 1 / ln 2 - 1.
inline constexpr std::uint32_t log2_e_table[36] = {
    0x71547652, 0xB82FE177, 0x7D0FFDA0, 0xD23A7D11, 0xD6AEF551, 0xBAD2B4B1, 0x164A2CD9, 0xA342648F,
    0xBC3887EE, 0xAA2ED9AC, 0x49B25EEB, 0x82D7C167, 0xD52173CC, 0x1895213F, 0x897F5E06, 0xA7BE7366,
    0x5FC52926, 0x4C2FB3AB, 0x643687AA, 0xF3AB440C, 0x16BD777E, 0x75050A8D, 0x1A39E8AF, 0x56C64A78,
    0x33352906, 0xDEB692CE, 0x4F199E10, 0x8CF39281, 0x9CFC406B, 0x19ABB71E, 0xC25E11F7, 0x5C6142E6,
    0x4CA16DA2, 0x0B1D74A1, 0x2C719098, 0xB4040CBE,
};

/// The first words of a table.
template <int W, std::size_t N>
constexpr fraction<W> constant_of(const std::uint32_t (&table)[N]) {
  static_assert(W <= static_cast<int>(N));
  fraction<W> x;
  for (int i = 0; i < W; ++i) x.word[i] = table[i];
  return x;
}

/// The fractional part of 2^exponent / (2 pi), truncated by less than an ulp. Requires
/// exponent + 32 (W + 1) <= 32 inverse_two_pi_words; an exponent may be negative.
template <int W>
constexpr fraction<W> inverse_two_pi(int exponent) {
  const auto word_at = [](int i) {
    return i < 0 || i >= inverse_two_pi_words ? 0u : inverse_two_pi_table[i];
  };
  // exponent = 32 * skipped + shift, 0 <= shift < 32, for negative exponents too
  const int shift = exponent & 31;
  const int skipped = (exponent - shift) / 32;
  fraction<W> x;
  for (int i = 0; i < W; ++i) {
    const std::uint64_t two = std::uint64_t{word_at(skipped + i)} << 32 | word_at(skipped + i + 1);
    x.word[i] = static_cast<std::uint32_t>(two >> (32 - shift));
  }
  return x;
}

}  // namespace samebits::numerics
