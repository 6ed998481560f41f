// The interface between the tensor core check and a device: tiles, jobs and results. Includes no CUDA header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "numerics/hardware/accumulate.hpp"
#include "tensor_core_probe/instructions.hpp"

namespace samebits::backends::tensor_cores {

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
SAMEBITS_HD constexpr int rows_of(instruction i) { return is_wgmma(i) ? 64 : 16; }

/// The codes of a row of A or a column of B, packed in words.
struct code_line {
  const std::uint32_t* words;
  int bits;  ///< of a code

  /// The code of product k.
  SAMEBITS_HD std::uint32_t operator()(int k) const {
    const int per_word = 32 / bits;
    const std::uint32_t word = words[k / per_word] >> (k % per_word * bits);
    return bits == 32 ? word : word & ((1u << bits) - 1);
  }
};

/// The operands of one result, as a rule takes them.
struct decoded_operands {
  numerics::tensor_operand a[max_products];
  numerics::tensor_operand b[max_products];
};
/// a(k) and b(k) are the codes of product k.
template <class A, class B>
SAMEBITS_HD decoded_operands decoded(const numerics::accumulate_rule& rule, const A& a,
                                     const B& b) {
  decoded_operands x;
  for (int k = 0; k < rule.products; ++k) {
    x.a[k] = numerics::tensor_operand_of(rule.a, rule.subnormal_exponent_a, a(k));
    x.b[k] = numerics::tensor_operand_of(rule.b, rule.subnormal_exponent_b, b(k));
  }
  return x;
}
/// The result that a rule predicts.
SAMEBITS_HD inline std::uint32_t result_of(const numerics::accumulate_rule& rule,
                                           const decoded_operands& x, std::uint32_t c) {
  return numerics::accumulate(rule, x.a, x.b, rule.products, c);
}

/// Tiles to multiply, and the rule that predicts the results.
///
/// The A of tile t is multiplied with the B of tiles t to t + partners_of(tiles) - 1, modulo tiles.
/// The C of tile t is used with each.
struct job {
  instruction what;
  numerics::accumulate_rule rule;
  std::uint32_t tiles;
  const std::uint32_t* a;  ///< [tiles][rows][line_words]; in host memory for device::run()
  const std::uint32_t* b;  ///< [tiles][tile_columns][line_words]
  const std::uint32_t* c;  ///< [tiles][rows][tile_columns]
};

/// The place of a result: its index in the C of all tiles, and the tile whose B it is of.
struct result_place {
  std::size_t index;
  std::size_t partner;
};
/// The operands of a result.
SAMEBITS_HD inline code_line a_line(const job& j, const result_place& at) {
  return {j.a + at.index / tile_columns * line_words, j.rule.a.storage_bits};
}
SAMEBITS_HD inline code_line b_line(const job& j, const result_place& at) {
  const std::size_t line = at.partner * tile_columns + at.index % tile_columns;
  return {j.b + line * line_words, j.rule.b.storage_bits};
}

/// Results of a job's tiles, each with one partner.
SAMEBITS_HD constexpr std::uint64_t results_of(const job& j) {
  return std::uint64_t{j.tiles} * static_cast<std::uint64_t>(rows_of(j.what) * tile_columns);
}

/// A result that differs from the rule's.
struct difference {
  result_place at;
  std::uint32_t got, expected;
};
/// Maximum number of differences that a job returns.
inline constexpr int max_differences = 4;

/// The results of a job.
struct outcome {
  std::vector<std::uint32_t> own;  ///< results of each tile's A with its own B, shaped as C
  std::uint64_t differing;         ///< results that differ, of those with all partners
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
