// The interface between the tensor core check and a device: instructions, tiles, jobs and results.
// Includes no CUDA header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "numerics/hardware/accumulate.hpp"
#include "samebits/core/format.hpp"
#include "tensor_core_probe/instruction_list.hpp"

namespace samebits::backends::tensor_cores {

/// mma.sync instructions, then wgmma instructions.
#define SAMEBITS_NAME(ID, ...) ID,
enum class instruction : std::uint8_t {
  SAMEBITS_MMA_INSTRUCTIONS(SAMEBITS_NAME) SAMEBITS_WGMMA_INSTRUCTIONS(SAMEBITS_NAME)
};
#undef SAMEBITS_NAME
#define SAMEBITS_ONE(...) +1
inline constexpr int mma_count = SAMEBITS_MMA_INSTRUCTIONS(SAMEBITS_ONE);
inline constexpr int instruction_count = mma_count + SAMEBITS_WGMMA_INSTRUCTIONS(SAMEBITS_ONE);
#undef SAMEBITS_ONE

constexpr bool is_wgmma(instruction i) { return static_cast<int>(i) >= mma_count; }

/// Operands and results of an instruction.
struct shape {
  format_id a;
  format_id b;
  format_id result;  ///< fp32 or fp16; also the format of C
  int products;

  friend constexpr bool operator==(const shape&, const shape&) = default;
};

/// tile_columns: columns of a tile's C. line_words: words of a line of A or B; lines of 16 bytes
/// use the first half.
inline constexpr int tile_columns = 8;
inline constexpr int line_words = 8;
/// Maximum number of products of an instruction.
inline constexpr int max_products = 32;
/// Maximum number of tiles whose B each tile's A is multiplied with.
inline constexpr std::uint32_t max_partners = 16;
constexpr std::uint32_t partners_of(std::uint32_t tiles) {
  return tiles < max_partners ? tiles : max_partners;
}
/// Lines of A in a tile.
constexpr int rows_of(instruction i) { return is_wgmma(i) ? 64 : 16; }

/// The code of product k in a line of codes of `bits` bits.
SAMEBITS_HD constexpr std::uint32_t code_of(const std::uint32_t* line, int bits, int k) {
  const int per_word = 32 / bits;
  const std::uint32_t word = line[k / per_word] >> (k % per_word * bits);
  return bits == 32 ? word : word & ((1u << bits) - 1);
}

/// Tiles to multiply, and the rule that predicts the results.
///
/// The A of tile t is multiplied with the B of tiles t to t + partners_of(tiles) - 1, modulo tiles.
/// The C of tile t is used with each.
struct job {
  instruction what;
  numerics::accumulate_rule rule;
  std::uint32_t tiles;
  const std::uint32_t* a;  ///< host memory, [tiles][rows][line_words]
  const std::uint32_t* b;  ///< [tiles][tile_columns][line_words]
  const std::uint32_t* c;  ///< [tiles][rows][tile_columns]
};

/// Results of a job.
constexpr std::uint64_t compared(const job& j) {
  return std::uint64_t{j.tiles} * partners_of(j.tiles) *
         static_cast<std::uint64_t>(rows_of(j.what) * tile_columns);
}

/// A result that differs from the rule's.
struct difference {
  std::uint32_t tile, partner, row, column, got, expected;
};
/// Maximum number of differences that a job returns.
inline constexpr int max_differences = 4;

/// The results of a job.
struct outcome {
  std::vector<std::uint32_t> own;  ///< results of each tile's A with its own B, shaped as C
  std::uint64_t differing;         ///< results that differ, out of compared(j)
  std::vector<difference> first;   ///< up to max_differences of them
};

/// The functions of a device. All but why_unsupported() throw cuda_error if the device fails.
struct device {
  std::string (*why_unsupported)();  ///< empty if the current device can run jobs
  std::string (*name)();
  int (*capability)();  ///< compute capability, 10 * major + minor
  outcome (*run)(const job& j);
};

}  // namespace samebits::backends::tensor_cores
