// Tensor units: one constexpr row for each kind of operands of each tensor core, with its evidence.
//
// A unit multiplies and adds in steps. A step takes `group` products and the sum so far:
//
//   E = the largest exponent among them, at least `floor`
//   every term is cut toward zero to a multiple of 2^(E - alignment_bits)
//   the terms are added exactly, and the sum is rounded once: into fp32 toward zero, to
//   `fraction_bits` of them; into fp16 to nearest even
//
// An instruction of `products` is a chain of such steps (numerics/hardware/accumulate.hpp is the
// definition, docs/accumulators.md derives it).
//
// Sources: [H] this project on an H200, 2026-11-20: 29 instructions, 2 189 426 688 results, 0
// differ. [K] Khattak and Mikaitis, arXiv 2512.07004: results of a V100, A100, A2, RTX Ada, L40S,
// H100, H200 and B200, replayed: 0 of 5000 differ each. [X] Xie et al., arXiv 2511.10909. [F] Fasi
// et al. 2021, PeerJ CS 7:e330. [S] what ptxas 13.0 emits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits {

/// A tensor core as one family of instructions reaches it.
enum class tensor_unit : std::uint8_t {
  volta_mma,
  turing_mma,
  ampere_mma,
  ada_mma,
  hopper_mma_sync,
  hopper_wgmma,
  blackwell_mma_sync,  ///< B200 (sm_100)
  blackwell_tcgen05,   ///< the same
  blackwell_rtx_mma,   ///< sm_120
};
inline constexpr int tensor_unit_count = 9;

constexpr std::string_view name(tensor_unit u) {
  switch (u) {
    case tensor_unit::volta_mma: return "volta-mma";
    case tensor_unit::turing_mma: return "turing-mma";
    case tensor_unit::ampere_mma: return "ampere-mma";
    case tensor_unit::ada_mma: return "ada-mma";
    case tensor_unit::hopper_mma_sync: return "hopper-mma-sync";
    case tensor_unit::hopper_wgmma: return "hopper-wgmma";
    case tensor_unit::blackwell_mma_sync: return "blackwell-mma-sync";
    case tensor_unit::blackwell_tcgen05: return "blackwell-tcgen05";
    case tensor_unit::blackwell_rtx_mma: return "blackwell-rtx-mma";
  }
  return "";
}

constexpr std::optional<tensor_unit> find_tensor_unit(std::string_view text) {
  for (int i = 0; i < tensor_unit_count; ++i) {
    if (name(static_cast<tensor_unit>(i)) == text) return static_cast<tensor_unit>(i);
  }
  return std::nullopt;
}

/// What a unit's instructions take; fp8: e4m3 and e5m2 in every pairing, else both alike.
enum class tensor_operands : std::uint8_t { binary16, bfloat16, tf32, fp8 };

constexpr std::string_view name(tensor_operands o) {
  switch (o) {
    case tensor_operands::binary16: return "fp16";
    case tensor_operands::bfloat16: return "bf16";
    case tensor_operands::tf32: return "tf32";
    case tensor_operands::fp8: return "fp8";
  }
  return "";
}

/// The kind of two formats, or nothing where no unit multiplies them.
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

/// How well a row is known.
enum class evidence : std::uint8_t {
  none,        ///< the unit has no such instruction
  literature,  ///< stated by others, not compared with results of a GPU here
  published,   ///< reproduces results of GPUs that others have published
  hardware,    ///< reproduces results that this project took from a GPU
};

constexpr std::string_view name(evidence e) {
  switch (e) {
    case evidence::none: return "none";
    case evidence::literature: return "literature";
    case evidence::published: return "published";
    case evidence::hardware: return "hardware";
  }
  return "";
}

/// Which way products take through the unit.
enum class tensor_path : std::uint8_t {
  /// Consecutive products; the sum so far is a term of the first step.
  fused,
  /// FP8 operands converted to fp16, as ptxas does where there is no FP8 unit: products whose index
  /// modulo 4 is 0 or 1 make the first step, which starts from +0, the others the second; then
  /// one IEEE addition, to nearest even, of the sum so far.
  by_fp16,
};

/// Where the sum so far enters an instruction.
enum class sum_place : std::uint8_t {
  first_step,     ///< as a term of it
  last_addition,  ///< by an IEEE addition, to nearest even, after the last step
};

/// Which products make a step.
enum class product_order : std::uint8_t {
  consecutive,
  pairs_of_four,  ///< those whose index modulo 4 is 0 or 1 come first, then the others
};

/// One row.
struct tensor_arithmetic {
  tensor_unit unit;
  tensor_operands operands;
  int products;         ///< of the widest instruction
  int narrow_products;  ///< of the narrower one, 0 where there is none
  int group;            ///< most products of a step
  int alignment_bits;
  int fraction_bits;  ///< of an fp32 result
  int floor_fp32;     ///< least E of fp32 results
  int floor_fp16;     ///< least E of fp16 results
  tensor_path path;
  evidence fp32;  ///< of fp32 results
  evidence fp16;  ///< of fp16 results
  const char* source;
};

inline constexpr int tensor_row_count = 29;

/// The i-th row, 0 <= i < tensor_row_count.
SAMEBITS_INLINE constexpr tensor_arithmetic tensor_row(int i) {
  using enum tensor_unit;
  using enum tensor_path;
  using enum evidence;
  using k = tensor_operands;
  // clang-format off
  constexpr tensor_arithmetic rows[tensor_row_count] = {
      // unit, operands, products, narrow products, group, alignment bits, fraction bits, floors of
      // fp32 and fp16 results, path, evidence for fp32 and fp16 results, sources
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

/// The row of a unit and operands, or nothing where the unit does not take them.
constexpr std::optional<tensor_arithmetic> find_tensor_row(tensor_unit unit, tensor_operands of) {
  for (int i = 0; i < tensor_row_count; ++i) {
    const tensor_arithmetic row = tensor_row(i);
    if (row.unit == unit && row.operands == of) return row;
  }
  return std::nullopt;
}

}  // namespace samebits
