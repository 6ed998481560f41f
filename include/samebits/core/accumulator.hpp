// Accumulators: names for the ways in which a matrix product adds its products.
//
//   kind          an element of D before it is rounded to D's format
//   exact         the exact dot product plus C; the only rounding is the one to D's format
//   ieee_fp32     binary32 operations rounded to nearest even, in the order that fp32_order names
//   fp32_per_128  the exact dot product of each 128 of K, rounded once to binary32; these partial
//                 sums are added in binary32, in ascending order
//   tensor_core   a chain of tensor core instructions, ascending (samebits/core/tensor_unit.hpp).
//                 With a promotion of N, the chain's sum is added in binary32 after each N of K,
//                 and the next instruction starts from +0.
//
// ieee_fp32 and tensor_core may divide K into slices, as kernels with "split K" do. Each slice is
// summed by itself, with promotions of its own, and the sums are added in binary32.
#pragma once

#include <cstdint>

#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace samebits {

/// Kind of accumulation; the table above defines each kind.
enum class accumulator_kind : std::uint8_t { exact, ieee_fp32, fp32_per_128, tensor_core };
template <>
inline constexpr auto table_of<accumulator_kind> = enum_table<accumulator_kind::tensor_core>(
    {"exact", "ieee_fp32", "fp32_per_128", "tensor_core"});

/// Order of the sums of ieee_fp32. `sum` starts as +0, or as C with addend::first.
enum class fp32_order : std::uint8_t {
  ascending,        ///< k = 0, 1, ...: sum = RN(sum + RN(a * b))
  ascending_fused,  ///< k = 0, 1, ...: sum = RN(sum + a * b), an fma
  tree,  ///< the tree of contract §6 over RN(a * b); with addend::first then RN(C + sum)
};
template <>
inline constexpr auto table_of<fp32_order> = enum_table<fp32_order>({
    {fp32_order::ascending, "ascending"},
    {fp32_order::ascending_fused, "ascending_fused"},
    {fp32_order::tree, "tree"},
});

/// Order in which scales are applied: computes the next sum y from a partial sum p, the scales a
/// and b of the operands, and the present sum y.
///
/// A scale that is not given is 1. Scales that do not change along K are applied once at the end,
/// with p the whole sum. Then y is +0 in the fused orders, so that no zero is -0, and the other
/// orders omit the addition. cublaslt_order() (samebits/matmul.hpp) returns the order of cuBLASLt.
enum class scale_order : std::uint8_t {
  product_fused,   ///< y = fma(p, RN(a * b), y); used by DeepGEMM
  product,         ///< y = RN(y + RN(p * RN(a * b)))
  a_then_b,        ///< y = RN(y + RN(RN(p * a) * b))
  b_then_a,        ///< y = RN(y + RN(RN(p * b) * a))
  a_then_b_fused,  ///< y = fma(RN(p * a), b, y)
  b_then_a_fused,  ///< y = fma(RN(p * b), a, y)
};
template <>
inline constexpr auto table_of<scale_order> = enum_table<scale_order::b_then_a_fused>(
    {"product_fused", "product", "a_then_b", "b_then_a", "a_then_b_fused", "b_then_a_fused"});

/// Step at which C is added.
enum class addend : std::uint8_t {
  last,               ///< y = RN(y + C) after scales: beta = 1 of a BLAS
  first,              ///< the sum starts from C, as in an instruction; scales only with exact
  after_first_slice,  ///< RN(sum of the first slice + C), before the second slice; no scales
};
template <>
inline constexpr auto table_of<addend> =
    enum_table<addend::after_first_slice>({"last", "first", "after_first_slice"});

/// Assignment of the tiles of K to slices: tiles of `slice_tile` elements, the last one shorter.
enum class slice_order : std::uint8_t {
  contiguous,  ///< ceil(tiles / slices) consecutive tiles for each slice; the last slices have less
  cyclic,  ///< slice i has tiles i, i + slices, ...; an instruction does not reach over two tiles
};
template <>
inline constexpr auto table_of<slice_order> = enum_table<slice_order::cyclic>({"contiguous",
                                                                               "cyclic"});

/// Order in which the sums of slices are added.
enum class slice_sum : std::uint8_t {
  ascending,  ///< from the first slice to the last
  halves,     ///< while n > 1 sums are left: sum i adds sum i + h, h = ceil(n / 2); then n = h
};
template <>
inline constexpr auto table_of<slice_sum> = enum_table<slice_sum::halves>({"ascending", "halves"});

/// Roundings to D's format, to nearest even, before the last one.
enum class slice_rounding : std::uint8_t {
  none,     ///< the sums of slices stay in binary32
  each,     ///< the sum of each slice, and their total before C is added
  running,  ///< the sum so far after each slice, the first with its C
};
template <>
inline constexpr auto table_of<slice_rounding> =
    enum_table<slice_rounding::running>({"none", "each", "running"});

/// One way to accumulate. The static functions construct accumulators.
struct accumulator {
  accumulator_kind kind;
  fp32_order order = fp32_order::ascending;      ///< only for ieee_fp32
  tensor_unit unit = tensor_unit::hopper_wgmma;  ///< for tensor_core, as the next three members
  std::int64_t promotion = 0;          ///< elements between promotions, also of ieee_fp32; 0: none
  format_id result = format_id::fp32;  ///< format of the unit's sums: fp32 or fp16
  /// Products per instruction: those of the widest instruction, or of the narrow one in the unit's
  /// row.
  int products = 0;  ///< 0: the widest instruction
  /// For tensor_core: rounds fp32 operands to tf32, to nearest even, as cuBLAS does.
  bool fp32_as_tf32 = false;
  /// Slices of K that are summed by themselves; only for ieee_fp32 and tensor_core, as are all
  /// members below. Slices without elements are not added.
  std::int64_t slices = 1;
  samebits::slice_order slice_order = samebits::slice_order::contiguous;
  std::int64_t slice_tile = 1;  ///< elements of K that stay together in a slice
  samebits::slice_sum slice_sum = samebits::slice_sum::ascending;
  samebits::slice_rounding slice_rounding = samebits::slice_rounding::none;
  /// For tensor_core: the first (length mod residue_tile) elements of a slice have instructions of
  /// their own, as in CUTLASS 2.x. 0: no such residue.
  std::int64_t residue_tile = 0;

  static constexpr accumulator exact() { return {accumulator_kind::exact}; }
  static constexpr accumulator ieee_fp32(fp32_order order) {
    return {accumulator_kind::ieee_fp32, order};
  }
  static constexpr accumulator fp32_per_128() { return {accumulator_kind::fp32_per_128}; }
  /// Returns the accumulation of a tensor core. On Hopper, cuBLASLt's FP8 products are hopper_wgmma
  /// with promotion 128, or 0 with fast accumulation. Its FP16 and BF16 products have promotion 0.
  ///
  /// @param unit  the tensor core
  /// @param promotion  elements of K between promotions into binary32, a multiple of the
  ///   instruction's products; 0: none
  /// @param result  format of the unit's sums: fp32 or fp16
  /// @param products  products per instruction; 0: the widest instruction
  static constexpr accumulator tensor_core(tensor_unit unit, std::int64_t promotion,
                                           format_id result = format_id::fp32, int products = 0) {
    return {
        accumulator_kind::tensor_core, fp32_order::ascending, unit, promotion, result, products};
  }

  friend bool operator==(const accumulator&, const accumulator&) = default;
};

}  // namespace samebits
