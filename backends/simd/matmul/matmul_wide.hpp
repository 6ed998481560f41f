// A tensor core step on 32-bit lanes, for any instruction set. Each lane holds one column.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/lanes/access.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "samebits/core/config.hpp"

namespace samebits::backends::simd {

/// Number of products whose sum fits 32 bits: 16 products of 2047^2 * 2^5, or of 15^2 * 2^19.
inline constexpr int products_per_sum = 16;

/// One row of a step. Isa supplies lanes of 32-bit integers, and two halves of them as binary64.
template <class Isa, int Group>
SAMEBITS_INLINE void wide_row(const matmul_step& s, const std::uint32_t* a, const std::uint32_t* b,
                              std::uint32_t* sums) {
  using samebits::simd::load;
  using lanes = typename Isa::lanes;
  constexpr std::ptrdiff_t columns = lanes::count;
  const auto set = [](int x) { return lanes(static_cast<std::uint32_t>(x)); };
  const lanes c = load<Isa>(sums);
  const lanes c_field = (c & lanes(0x7F800000u)) >> 23u;
  const lanes c_fraction = c & lanes(0x007FFFFFu);
  const auto c_normal = Isa::greater(c_field, set(0));
  const lanes c_significand = select(c_normal, c_fraction | lanes(0x00800000u), c_fraction);
  const lanes c_exponent = select(Isa::greater(c_significand, set(0)),
                                  Isa::max(c_field, set(1)) - set(127), set(2 * no_exponent));
  lanes top = Isa::max(c_exponent, set(s.floor));
  lanes exponents[static_cast<unsigned>(Group)];
#pragma GCC unroll 32
  for (int k = 0; k < Group; ++k) {
    exponents[k] = load<Isa>(b + (2 * k + 1) * columns) + lanes(a[Group + k]);
    top = Isa::max(top, exponents[k]);
  }
  const int up = s.alignment_bits - 23;
  const lanes c_term =
      Isa::negate_if(c, (c_significand << static_cast<std::uint32_t>(up > 0 ? up : 0)) >>
                            (top - c_exponent + set(up > 0 ? 0 : -up)));
  typename Isa::reals total = Isa::to_reals(c_term);
#pragma GCC unroll 2
  for (int from = 0; from < Group; from += products_per_sum) {
    lanes sum = 0u;
#pragma GCC unroll 16
    for (int i = 0; i < (Group < products_per_sum ? Group : products_per_sum); ++i) {
      const int k = from + i;
      const lanes x = a[k];
      const lanes y = load<Isa>(b + 2 * k * columns);
      const lanes cut = Isa::low_product(x, y) >> (top - exponents[k]);
      sum = sum + Isa::negate_if(lanes(a[2 * Group + k]) ^ y, cut);
    }
    total = Isa::add(total, Isa::to_reals(sum));  // exact: far fewer than 53 bits
  }
  const lanes rounded = Isa::round_sum(total, top - set(s.alignment_bits), s.fraction_bits);
  // An infinite sum stays infinite.
  const auto infinite = Isa::greater(c_field, set(254));
  samebits::simd::store<Isa>(sums, select(infinite, c, rounded));
}

template <class Isa, int Group>
void wide_rows(const matmul_step& s) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    wide_row<Isa, Group>(s, s.a + r * 3 * Group, s.b, s.sums + r * Isa::lanes::count);
  }
}

/// One step of a row panel, for the group sizes that tensor cores have.
template <class Isa>
void wide_step(const matmul_step& s) {
  switch (s.group) {
    case 4: return wide_rows<Isa, 4>(s);
    case 8: return wide_rows<Isa, 8>(s);
    case 16: return wide_rows<Isa, 16>(s);
    default: return wide_rows<Isa, 32>(s);
  }
}

}  // namespace samebits::backends::simd
