// A tensor core step on 32-bit lanes, for any instruction set. Each lane holds one column.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/matmul/matmul_kernel.hpp"
#include "samebits/core/config.hpp"

namespace samebits::backends::simd {

/// Number of products whose sum fits 32 bits: 16 products of 2047^2 * 2^5, or of 15^2 * 2^19.
inline constexpr int products_per_sum = 16;

/// One row of a step. Isa supplies lanes of 32-bit integers, and two halves of them as binary64.
template <class Isa, int Group>
SAMEBITS_INLINE void wide_row(const matmul_step& s, const std::uint32_t* a, const std::uint32_t* b,
                              std::uint32_t* sums) {
  using lanes = typename Isa::lanes;
  constexpr std::ptrdiff_t columns = Isa::columns;
  const lanes c = Isa::load(sums);
  const lanes c_field = Isa::shift_right(Isa::bit_and(c, Isa::set(0x7F800000)), 23);
  const lanes c_fraction = Isa::bit_and(c, Isa::set(0x007FFFFF));
  const auto c_normal = Isa::greater(c_field, Isa::set(0));
  const lanes c_significand =
      Isa::select(c_normal, Isa::bit_or(c_fraction, Isa::set(0x00800000)), c_fraction);
  const lanes c_exponent = Isa::select(Isa::greater(c_significand, Isa::set(0)),
                                       Isa::sub(Isa::max(c_field, Isa::set(1)), Isa::set(127)),
                                       Isa::set(2 * no_exponent));
  lanes top = Isa::max(c_exponent, Isa::set(s.floor));
  lanes exponents[static_cast<unsigned>(Group)];
#pragma GCC unroll 32
  for (int k = 0; k < Group; ++k) {
    exponents[k] = Isa::add(Isa::load(b + (2 * k + 1) * columns), Isa::broadcast(a + Group + k));
    top = Isa::max(top, exponents[k]);
  }
  const int up = s.alignment_bits - 23;
  const lanes c_term = Isa::negate_if(
      c, Isa::shift_right(Isa::shift_left(c_significand, up > 0 ? up : 0),
                          Isa::add(Isa::sub(top, c_exponent), Isa::set(up > 0 ? 0 : -up))));
  typename Isa::reals total = Isa::to_reals(c_term);
#pragma GCC unroll 2
  for (int from = 0; from < Group; from += products_per_sum) {
    lanes sum = Isa::set(0);
#pragma GCC unroll 16
    for (int i = 0; i < (Group < products_per_sum ? Group : products_per_sum); ++i) {
      const int k = from + i;
      const lanes x = Isa::broadcast(a + k);
      const lanes y = Isa::load(b + 2 * k * columns);
      const lanes cut = Isa::shift_right(Isa::low_product(x, y), Isa::sub(top, exponents[k]));
      const lanes sign = Isa::bit_xor(Isa::broadcast(a + 2 * Group + k), y);
      sum = Isa::add(sum, Isa::negate_if(sign, cut));
    }
    total = Isa::add(total, Isa::to_reals(sum));  // exact: far fewer than 53 bits
  }
  const lanes rounded =
      Isa::round_sum(total, Isa::sub(top, Isa::set(s.alignment_bits)), s.fraction_bits);
  // An infinite sum stays infinite.
  const auto infinite = Isa::greater(c_field, Isa::set(254));
  Isa::store(sums, Isa::select(infinite, c, rounded));
}

template <class Isa, int Group>
void wide_rows(const matmul_step& s) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    wide_row<Isa, Group>(s, s.a + r * 3 * Group, s.b, s.sums + r * Isa::columns);
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
