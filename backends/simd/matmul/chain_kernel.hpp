// The kernel of binary32 chains on SIMD lanes (`Isa`: steps_avx2.hpp, steps_avx512.hpp). Included by
// one file per instruction set, which defines nothing else. convert_kernel.hpp says what code may be
// used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/lanes/access.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

/// Chains of `Rows` rows from `row` on and two registers of columns from `column` on. So many sums
/// hide the latency of an addition and fit the registers, in which they stay only in unrolled loops.
template <class Isa, bool Fused, int Rows>
SAMEBITS_INLINE void chain_rows(const backends::chain_panel& p, std::int64_t row, int column) {
  using lanes = typename Isa::word;
  constexpr int count = lanes::count, columns = backends::chain_columns;
  constexpr auto size = static_cast<std::size_t>(Rows);
  const auto next = [](lanes sum, lanes a, lanes b) __attribute__((always_inline)) {
    return Fused ? fma(a, b, sum) : add(sum, mul(a, b));
  };
  std::uint32_t* const sums = p.sums + row * columns + column;
  lanes left[size], right[size];
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
    left[r] = load<Isa>(sums + r * columns);
    right[r] = load<Isa>(sums + r * columns + count);
  }
  for (std::int64_t k = 0; k < p.depth; ++k) {
    const lanes b_left = load<Isa>(p.b + k * columns + column);
    const lanes b_right = load<Isa>(p.b + k * columns + column + count);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const lanes a = p.a[(row + r) * p.depth + k];
      left[r] = next(left[r], a, b_left);
      right[r] = next(right[r], a, b_right);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
    store<Isa>(sums + r * columns, left[r]);
    store<Isa>(sums + r * columns + count, right[r]);
  }
}

template <class Isa, bool Fused>
SAMEBITS_INLINE void chains_of(const backends::chain_panel& p) {
  constexpr int rows = 6;
  for (int column = 0; column < backends::chain_columns; column += 2 * Isa::word::count) {
    std::int64_t row = 0;
    for (; row + rows <= p.rows; row += rows) chain_rows<Isa, Fused, rows>(p, row, column);
    for (; row < p.rows; ++row) chain_rows<Isa, Fused, 1>(p, row, column);
  }
}

/// backends::chain_kernel.
template <class Isa>
SAMEBITS_INLINE void chains(const backends::chain_panel& p) {
  p.fused ? chains_of<Isa, true>(p) : chains_of<Isa, false>(p);
}

}  // namespace samebits::simd
