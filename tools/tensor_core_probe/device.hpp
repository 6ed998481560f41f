// Tensor core device: the instructions that can be run, and what runs them; no CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numerics/hardware/accumulate.hpp"
#include "samebits/core/format.hpp"

namespace samebits::backends::tensor_cores {

/// mma.sync first, then wgmma; named by result (f16 where it is not fp32), operands and products.
enum class instruction : std::uint8_t {
  mma_f16_k16,
  mma_f16_k8,
  mma_f16_f16_k16,
  mma_f16_f16_k8,
  mma_bf16_k16,
  mma_bf16_k8,
  mma_tf32_k8,
  mma_tf32_k4,
  mma_e4m3_k32,
  mma_e5m2_k32,
  mma_e4m3_e5m2_k32,
  mma_e5m2_e4m3_k32,
  mma_e4m3_k16,
  mma_e5m2_k16,
  mma_e4m3_e5m2_k16,
  mma_e5m2_e4m3_k16,
  mma_f16_e4m3_k32,
  mma_f16_e5m2_k32,
  mma_f16_e4m3_e5m2_k32,
  mma_f16_e5m2_e4m3_k32,
  mma_f16_e4m3_k16,
  mma_f16_e5m2_k16,
  mma_f16_e4m3_e5m2_k16,
  mma_f16_e5m2_e4m3_k16,
  wgmma_f16,
  wgmma_f16_f16,
  wgmma_bf16,
  wgmma_tf32,
  wgmma_e4m3,
  wgmma_e5m2,
  wgmma_e4m3_e5m2,
  wgmma_e5m2_e4m3,
  wgmma_f16_e4m3,
  wgmma_f16_e5m2,
  wgmma_f16_e4m3_e5m2,
  wgmma_f16_e5m2_e4m3,
};
inline constexpr int instruction_count = 36;
inline constexpr int mma_count = 24;

constexpr bool is_wgmma(instruction i) { return static_cast<int>(i) >= mma_count; }

/// Operands and results of an instruction.
struct shape {
  format_id a;
  format_id b;
  format_id result;  ///< fp32 or fp16; also of the sum so far
  int products;

  friend constexpr bool operator==(const shape&, const shape&) = default;
};

/// A tile's C has this many columns, and a line of A or B this many words (those of 16 bytes use
/// the first half).
inline constexpr int tile_columns = 8;
inline constexpr int line_words = 8;
inline constexpr int most_products = 32;
/// Tiles whose B each tile's A meets, where there are that many.
inline constexpr std::uint32_t most_partners = 16;
constexpr std::uint32_t partners_of(std::uint32_t tiles) {
  return tiles < most_partners ? tiles : most_partners;
}
/// Lines of A in a tile.
constexpr int rows_of(instruction i) { return is_wgmma(i) ? 64 : 16; }

/// The code of product k of a line.
SAMEBITS_HD constexpr std::uint32_t code_of(const std::uint32_t* line, int bits, int k) {
  const int per_word = 32 / bits;
  const std::uint32_t word = line[k / per_word] >> (k % per_word * bits);
  return bits == 32 ? word : word & ((1u << bits) - 1);
}

/// Tiles to multiply, and the rule to compare with. The A of tile t meets the B of tiles t to
/// t + partners_of(tiles) - 1, counted around; its C is used with each.
struct job {
  instruction what;
  numerics::accumulate_rule rule;
  std::uint32_t tiles;
  const std::uint32_t* a;  ///< host memory, [tiles][rows][line_words]
  const std::uint32_t* b;  ///< [tiles][tile_columns][line_words]
  const std::uint32_t* c;  ///< [tiles][rows][tile_columns]
};

constexpr std::uint64_t compared(const job& j) {
  return std::uint64_t{j.tiles} * partners_of(j.tiles) *
         static_cast<std::uint64_t>(rows_of(j.what) * tile_columns);
}

struct difference {
  std::uint32_t tile, partner, row, column, got, expected;
};
inline constexpr int most_differences = 4;

struct outcome {
  std::vector<std::uint32_t> own;  ///< results of each tile with itself, shaped as C
  std::uint64_t differing;         ///< of compared(j)
  std::vector<difference> first;   ///< some of them, at most most_differences
};

/// The functions of a device. All but why_unsupported() throw cuda_error.
struct device {
  std::string (*why_unsupported)();  ///< empty where the current device can be asked
  std::string (*name)();
  int (*capability)();  ///< compute capability, 10 * major + minor
  outcome (*run)(const job& j);
};

}  // namespace samebits::backends::tensor_cores
