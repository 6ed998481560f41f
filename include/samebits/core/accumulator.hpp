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
#pragma once

#include <cstdint>
#include <string_view>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace samebits {

/// Kind of accumulation; the table above defines each kind.
enum class accumulator_kind : std::uint8_t { exact, ieee_fp32, fp32_per_128, tensor_core };
template <>
inline constexpr auto table_of<accumulator_kind> = enum_table<accumulator_kind>({
    {accumulator_kind::exact, "exact"},
    {accumulator_kind::ieee_fp32, "ieee_fp32"},
    {accumulator_kind::fp32_per_128, "fp32_per_128"},
    {accumulator_kind::tensor_core, "tensor_core"},
});

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
inline constexpr auto table_of<scale_order> = enum_table<scale_order>({
    {scale_order::product_fused, "product_fused"},
    {scale_order::product, "product"},
    {scale_order::a_then_b, "a_then_b"},
    {scale_order::b_then_a, "b_then_a"},
    {scale_order::a_then_b_fused, "a_then_b_fused"},
    {scale_order::b_then_a_fused, "b_then_a_fused"},
});

/// Step at which C is added.
enum class addend : std::uint8_t {
  last,   ///< y = RN(y + C) after scales: beta = 1 of a BLAS
  first,  ///< the sum starts from C, as in an instruction; scales only with exact
};
template <>
inline constexpr auto table_of<addend> = enum_table<addend>({
    {addend::last, "last"},
    {addend::first, "first"},
});

/// One way to accumulate. The static functions construct accumulators.
struct accumulator {
  accumulator_kind kind;
  fp32_order order = fp32_order::ascending;      ///< only for ieee_fp32
  tensor_unit unit = tensor_unit::hopper_wgmma;  ///< only for tensor_core, as all members below
  std::int64_t promotion = 0;                    ///< elements of K between promotions; 0: none
  format_id result = format_id::fp32;            ///< format of the unit's sums: fp32 or fp16
  /// Products per instruction: those of the widest instruction, or of the narrow one in the unit's
  /// row.
  int products = 0;  ///< 0: the widest instruction

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
};

}  // namespace samebits
