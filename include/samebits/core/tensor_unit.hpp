// Tensor units: one constexpr row for each kind of operands of each tensor core, with its evidence.
//
// A unit multiplies and adds in steps. The terms of a step are `group` products and the sum so far:
//
//   E = the largest exponent among the terms, at least `floor`
//   every term is truncated toward zero to a multiple of 2^(E - alignment_bits)
//   the terms are added exactly, and the sum is rounded once: into fp32 toward zero, to
//   `fraction_bits` fraction bits; into fp16 to nearest even
//
// An instruction of `products` products is a chain of such steps (numerics/hardware/accumulate.hpp
// is the definition, docs/accumulators.md derives it).
//
// Sources: [H] this project on an H200, 2026-11-20: 29 instructions, 2 189 426 688 results, 0
// differ. [K] Khattak and Mikaitis, arXiv 2512.07004: results of a V100, A100, A2, RTX Ada, L40S,
// H100, H200 and B200, replayed: 0 of 5000 differ each. [X] Xie et al., arXiv 2511.10909. [F] Fasi
// et al. 2021, PeerJ CS 7:e330. [S] instructions that ptxas 13.0 emits.
#pragma once

#include <cstdint>
#include <optional>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

/// A family of tensor core instructions of one GPU architecture.
enum class tensor_unit : std::uint8_t {
  volta_mma,
  turing_mma,
  ampere_mma,
  ada_mma,
  hopper_mma_sync,
  hopper_wgmma,
  blackwell_mma_sync,  ///< B200 (sm_100)
  blackwell_tcgen05,   ///< B200 (sm_100)
  blackwell_rtx_mma,   ///< sm_120
};
template <>
inline constexpr auto table_of<tensor_unit> = enum_table<tensor_unit::blackwell_rtx_mma>(
    {"volta-mma", "turing-mma", "ampere-mma", "ada-mma", "hopper-mma-sync", "hopper-wgmma",
     "blackwell-mma-sync", "blackwell-tcgen05", "blackwell-rtx-mma"});

/// Operands of a unit's instructions. fp8: e4m3 and e5m2 in every pairing. All other kinds: both
/// operands in this format.
enum class tensor_operands : std::uint8_t { binary16, bfloat16, tf32, fp8 };
template <>
inline constexpr auto table_of<tensor_operands> = enum_table<tensor_operands::fp8>({"fp16", "bf16",
                                                                                    "tf32", "fp8"});

/// Returns the kind of operands of two formats, or nothing if no unit multiplies them.
constexpr std::optional<tensor_operands> tensor_operands_of(format_id a, format_id b) {
  const bool a_fp8 = a == format_id::e4m3 || a == format_id::e5m2;
  const bool b_fp8 = b == format_id::e4m3 || b == format_id::e5m2;
  if (a_fp8 && b_fp8) return tensor_operands::fp8;
  if (a != b) return std::nullopt;
  if (a == format_id::fp16) return tensor_operands::binary16;
  if (a == format_id::bf16) return tensor_operands::bfloat16;
  if (a == format_id::tf32) return tensor_operands::tf32;
  return std::nullopt;
}

/// Evidence for a row.
enum class evidence : std::uint8_t {
  none,        ///< the unit has no such instruction
  literature,  ///< stated by others; not compared with results of a GPU here
  published,   ///< reproduces results of GPUs published by others
  hardware,    ///< reproduces results that this project measured on a GPU
};
template <>
inline constexpr auto table_of<evidence> =
    enum_table<evidence::hardware>({"none", "literature", "published", "hardware"});

/// Grouping of products into steps, and treatment of the sum so far.
enum class tensor_path : std::uint8_t {
  /// Consecutive products in each step. The sum so far is a term of the first step.
  fused,
  /// FP8 operands converted to fp16, as ptxas does for instructions without an FP8 unit. The first
  /// step adds the products whose index modulo 4 is 0 or 1, and starts from +0. The second step
  /// adds the other products. One IEEE addition to nearest even then adds the sum so far.
  by_fp16,
};

/// Place of the sum so far in an instruction.
enum class sum_place : std::uint8_t {
  first_step,     ///< a term of the first step
  last_addition,  ///< an IEEE addition to nearest even, after the last step
};

/// Order of the products over the steps.
enum class product_order : std::uint8_t {
  consecutive,
  pairs_of_four,  ///< first the products with index modulo 4 in {0, 1}, then the others
};

/// One row: the arithmetic of a unit on one kind of operands.
struct tensor_arithmetic {
  tensor_unit unit;
  tensor_operands operands;
  int products;         ///< products of the widest instruction
  int narrow_products;  ///< products of the narrower instruction; 0: there is none
  int group;            ///< max number of products in a step
  int alignment_bits;
  int fraction_bits;  ///< fraction bits of an fp32 result
  int floor_fp32;     ///< min E for fp32 results
  int floor_fp16;     ///< min E for fp16 results
  tensor_path path;
  evidence fp32;  ///< evidence for fp32 results
  evidence fp16;  ///< evidence for fp16 results
  const char* source;
};

inline constexpr int tensor_row_count = 29;

/// Returns the i-th row, 0 <= i < tensor_row_count.
SAMEBITS_INLINE constexpr tensor_arithmetic tensor_row(int i) {
  using enum tensor_unit;
  using enum tensor_path;
  using enum evidence;
  using k = tensor_operands;
  // clang-format off
  constexpr tensor_arithmetic rows[tensor_row_count] = {
      // Columns: unit, operands, products, narrow products, group, alignment bits, fraction bits,
      // floors of fp32 and fp16 results, path, evidence for fp32 and fp16 results, sources.
      {volta_mma,          k::binary16,  4,  0,  4, 23, 23, -131, -19, fused,   published,  literature, "[K] [X] [F]"},
      {turing_mma,         k::binary16,  8,  0,  8, 24, 23, -132, -20, fused,   literature, literature, "[X] [F]"},
      {ampere_mma,         k::binary16, 16,  8,  8, 24, 23, -132, -20, fused,   published,  literature, "[K] one step; [X] their order"},
      {ampere_mma,         k::bfloat16, 16,  8,  8, 24, 23, -132, -20, fused,   published,  none,       "[K] one step; [X] their order"},
      {ampere_mma,         k::tf32,       8,  4,  4, 24, 23, -132, -20, fused,   published,  none,       "[K] one step; [X] their order"},
      {ada_mma,            k::binary16, 16,  8,  8, 24, 23, -132, -20, fused,   published,  literature, "[K] one step; [X] their order"},
      {ada_mma,            k::bfloat16, 16,  8,  8, 24, 23, -132, -20, fused,   published,  none,       "[K] one step; [X] their order"},
      {ada_mma,            k::tf32,       8,  4,  4, 24, 23, -132, -20, fused,   published,  none,       "[K] one step; [X] their order"},
      {ada_mma,            k::fp8,       32, 16, 16, 13, 13, -132, -20, fused,   published,  literature, "[K] [X]"},
      {hopper_mma_sync,    k::binary16, 16,  8, 16, 25, 23, -133, -21, fused,   hardware,   hardware,   "[H] [K] [X]"},
      {hopper_mma_sync,    k::bfloat16, 16,  8, 16, 25, 23, -133, -21, fused,   hardware,   none,       "[H] [K] [X]"},
      {hopper_mma_sync,    k::tf32,       8,  4,  8, 25, 23, -133, -21, fused,   hardware,   none,       "[H] [K] [X]"},
      {hopper_mma_sync,    k::fp8,       32, 16, 16, 25, 23, -133, -21, by_fp16, hardware,   hardware,   "[H] [S] [K]"},
      {hopper_wgmma,       k::binary16, 16,  0, 16, 25, 23, -133, -21, fused,   hardware,   hardware,   "[H] [X]"},
      {hopper_wgmma,       k::bfloat16, 16,  0, 16, 25, 23, -133, -21, fused,   hardware,   none,       "[H] [X]"},
      {hopper_wgmma,       k::tf32,       8,  0,  8, 25, 23, -133, -21, fused,   hardware,   none,       "[H] [X]"},
      {hopper_wgmma,       k::fp8,       32,  0, 32, 13, 13, -133, -21, fused,   hardware,   hardware,   "[H] [K] [X]"},
      {blackwell_mma_sync, k::binary16,  16,  8, 16, 25, 23, -133, -21, fused,   published,  literature, "[K] [X]"},
      {blackwell_mma_sync, k::bfloat16,  16,  8, 16, 25, 23, -133, -21, fused,   published,  none,       "[K] [X]"},
      {blackwell_mma_sync, k::tf32,       8,  4,  8, 25, 23, -133, -21, fused,   published,  none,       "[K] [X]"},
      {blackwell_mma_sync, k::fp8,       32, 16, 16, 25, 23, -133, -21, by_fp16, published,  published,  "[K] [S]"},
      {blackwell_tcgen05,  k::binary16, 16,  0, 16, 25, 23, -133, -21, fused,   literature, literature, "[X]"},
      {blackwell_tcgen05,  k::bfloat16, 16,  0, 16, 25, 23, -133, -21, fused,   literature, none,       "[X]"},
      {blackwell_tcgen05,  k::tf32,       8,  0,  8, 25, 23, -133, -21, fused,   literature, none,       "[X]"},
      {blackwell_tcgen05,  k::fp8,       32,  0, 32, 25, 23, -133, -21, fused,   literature, literature, "[X]"},
      {blackwell_rtx_mma,  k::binary16, 16,  8, 16, 25, 23, -133, -21, fused,   literature, literature, "[X]"},
      {blackwell_rtx_mma,  k::bfloat16, 16,  8, 16, 25, 23, -133, -21, fused,   literature, none,       "[X]"},
      {blackwell_rtx_mma,  k::tf32,       8,  4,  8, 25, 23, -133, -21, fused,   literature, none,       "[X]"},
      {blackwell_rtx_mma,  k::fp8,       32, 16, 32, 25, 23, -133, -21, fused,   literature, literature, "[X] [S]"},
  };
  // clang-format on
  return rows[i];
}

/// Returns the row of a unit and kind of operands, or nothing if the unit has no such instruction.
constexpr std::optional<tensor_arithmetic> find_tensor_row(tensor_unit unit, tensor_operands of) {
  for (int i = 0; i < tensor_row_count; ++i) {
    const tensor_arithmetic row = tensor_row(i);
    if (row.unit == unit && row.operands == of) return row;
  }
  return std::nullopt;
}

}  // namespace samebits
