// What the matrix product's driver and the kernels of the instruction sets share: packed operands,
// steps and promotions. Compiled with any flags: plain data alone.
//
// A panel is `columns` columns of B side by side, one lane each; a strip is some rows of A. Both
// are packed in the order in which the unit adds: position p of step g. A kernel does one step for
// all rows of a strip, so that the steps of different rows overlap.
//
//   wide     32-bit lanes    A  [step][row][3][group]         B  [step][group][2][columns]
//            words: 0 the significand, shifted up by its half of the alignment, of B with the sign
//            on top; 1 the exponent; 2 of A the sign on top
//   narrow   16-bit lanes    A  [step][row][3][group / 2]     B  [step][group / 2][3][columns]
//            words of two positions: 0 exponents, 1 significands (A's shifted up), 2 sign masks
#pragma once

#include <cstdint>

#include "samebits/core/accumulator.hpp"

namespace samebits::backends {

/// The exponent of a zero: no sum of it with any other is the largest, all shift its term away.
inline constexpr int no_exponent = -8192;

/// One step of a strip and a panel.
struct matmul_step {
  const std::uint32_t* a;
  const std::uint32_t* b;
  std::uint32_t* sums;  ///< [rows][columns], binary32 bits, in and out
  std::int64_t rows;
  int group;
  int alignment_bits;
  int fraction_bits;
  int floor;
};

/// Partial sums join the sums above them, and begin anew at +0.
struct matmul_promotion {
  std::uint32_t* parts;  ///< [rows][columns]
  std::uint32_t* sums;   ///< the same
  std::int64_t rows;
  const std::uint32_t* a_scales;  ///< [rows]
  const std::uint32_t* b_scales;  ///< [columns]
  scale_order order;
};

struct matmul_kernel {
  int columns;
  void (*wide)(const matmul_step& step);
  void (*narrow)(const matmul_step& step);     ///< 13 bits of alignment and fraction; null: none
  void (*promote)(const matmul_promotion& p);  ///< without scales
  void (*promote_scaled)(const matmul_promotion& p);  ///< null: none
};

extern const matmul_kernel avx2_matmul_kernel;
extern const matmul_kernel avx512_matmul_kernel;

}  // namespace samebits::backends
