// Shared by the driver of the matrix product and the kernels of each instruction set: packed
// operands, steps and promotions. Plain data only, so it may be compiled with any flags.
//
// A panel is `columns` neighbouring columns of B, one per lane. A row panel is a block of rows of
// A. Both are packed in the order in which the tensor core adds products: position p of step g. A
// kernel computes one step for all rows of a row panel, so that the steps of different rows
// overlap.
//
//   wide     32-bit lanes    A  [step][row][3][group]         B  [step][group][2][columns]
//            words: 0 the significand, shifted up by its half of the alignment; in B with the
//            sign in the top bit. 1 the exponent. 2 (A only) the sign in the top bit
//   narrow   16-bit lanes    A  [step][row][3][group / 2]     B  [step][group / 2][3][columns]
//            words of two positions: 0 exponents, 1 significands (A's shifted up), 2 sign masks
#pragma once

#include <cstdint>

#include "samebits/core/accumulator.hpp"

namespace samebits::backends {

/// The exponent of a zero. A sum of exponents that contains it is never the largest, and its term
/// is always shifted out.
inline constexpr int no_exponent = -8192;

/// Arguments of one step of a row panel and a panel.
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

/// Arguments of a promotion: adds partial sums to outer sums and resets the partial sums to +0.
struct matmul_promotion {
  std::uint32_t* parts;  ///< [rows][columns]
  std::uint32_t* sums;   ///< [rows][columns]
  std::int64_t rows;
  const std::uint32_t* a_scales;  ///< [rows]
  const std::uint32_t* b_scales;  ///< [columns]
  scale_order order;
};

/// The kernels of one instruction set.
struct matmul_kernel {
  int columns;
  void (*wide)(const matmul_step& step);
  /// 13 bits of alignment and fraction; null if not supported
  void (*narrow)(const matmul_step& step);
  void (*promote)(const matmul_promotion& p);         ///< without scales
  void (*promote_scaled)(const matmul_promotion& p);  ///< null if not supported
};

/// Arguments of binary32 chains: sums[r][c] goes on with the products a[r][k] * b[k][c] in rising k.
struct chain_panel {
  const std::uint32_t* a;  ///< [rows][depth]
  const std::uint32_t* b;  ///< [depth][chain_columns]
  std::uint32_t* sums;     ///< [rows][chain_columns]
  std::int64_t rows;
  std::int64_t depth;
  bool fused;  ///< one rounding for a product and its addition, not two
};
inline constexpr int chain_columns = 32;
/// Computes chains; a NaN may have any code. The control register must have its IEEE 754 state.
using chain_kernel = void (*)(const chain_panel& p);

}  // namespace samebits::backends
