// One element of a matrix product, from exact values and single IEEE steps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "oracle/format_table.hpp"
#include "oracle/tensor_core.hpp"

namespace samebits::oracle {

/// What has one scale: the operand, a line along K, 128 of a line, 128 lines by 128.
enum class scale_tiles { whole, lines, lines_by_128, square_tiles };

/// A row of A, a column of B, and how their product becomes an element of D. Names are those that
/// samebits gives to kinds, orders and units.
struct dot_problem {
  const format* a_format = nullptr;
  const format* b_format = nullptr;
  const format* d_format = nullptr;
  std::vector<std::uint32_t> a;  ///< codes along K
  std::vector<std::uint32_t> b;
  /// fp32 codes along K of the scales of the two elements there.
  std::vector<std::uint32_t> a_scales;
  std::vector<std::uint32_t> b_scales;
  bool scaled_per_block = false;
  std::size_t scale_block = 128;  ///< elements of K, of exact; 128 of other kinds
  bool scaled_at_end = false;     ///< by the first scales, also where K is 0
  std::uint32_t a_end_scale = 0;  ///< fp32 codes
  std::uint32_t b_end_scale = 0;
  std::string_view kind;
  std::string_view order;        ///< of ieee_fp32
  std::string_view scale_order;  ///< empty: cuBLASLt's for these tiles
  scale_tiles a_tiles = scale_tiles::whole;
  scale_tiles b_tiles = scale_tiles::whole;
  tensor_unit_facts unit;        ///< of tensor_core
  const format* sums = nullptr;  ///< of tensor_core: its result
  std::uint64_t promotion = 0;
  // Slices of K; names are samebits'.
  std::size_t slices = 1;
  std::string_view slice_order;
  std::size_t slice_tile = 1;
  std::string_view slice_sum;
  std::string_view slice_rounding = "none";
  std::size_t residue_tile = 0;  ///< 0: none
  bool has_c = false;
  bool c_first = false;
  bool c_after_first_slice = false;
  std::uint32_t c = 0;  ///< code
  const format* c_format = nullptr;
};

/// The code in d_format.
std::uint64_t element_of_product(const dot_problem& problem);

}  // namespace samebits::oracle
