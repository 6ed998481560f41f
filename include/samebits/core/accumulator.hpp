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
#include "samebits/core/tensor_unit.hpp"

namespace samebits {

/// Kind of accumulation; the table above defines each kind.
enum class accumulator_kind : std::uint8_t { exact, ieee_fp32, fp32_per_128, tensor_core };
inline constexpr int accumulator_kind_count = 4;

constexpr std::string_view name(accumulator_kind k) {
  switch (k) {
    case accumulator_kind::exact: return "exact";
    case accumulator_kind::ieee_fp32: return "ieee_fp32";
    case accumulator_kind::fp32_per_128: return "fp32_per_128";
    case accumulator_kind::tensor_core: return "tensor_core";
  }
  return "";
}

/// Order of the sums of ieee_fp32. `sum` starts as +0, or as C with addend::first.
enum class fp32_order : std::uint8_t {
  ascending,        ///< k = 0, 1, ...: sum = RN(sum + RN(a * b))
  ascending_fused,  ///< k = 0, 1, ...: sum = RN(sum + a * b), an fma
  tree,  ///< the tree of contract §6 over RN(a * b); with addend::first then RN(C + sum)
};
inline constexpr int fp32_order_count = 3;

constexpr std::string_view name(fp32_order o) {
  switch (o) {
    case fp32_order::ascending: return "ascending";
    case fp32_order::ascending_fused: return "ascending_fused";
    case fp32_order::tree: return "tree";
  }
  return "";
}

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
inline constexpr int scale_order_count = 6;

constexpr std::string_view name(scale_order o) {
  switch (o) {
    case scale_order::product_fused: return "product_fused";
    case scale_order::product: return "product";
    case scale_order::a_then_b: return "a_then_b";
    case scale_order::b_then_a: return "b_then_a";
    case scale_order::a_then_b_fused: return "a_then_b_fused";
    case scale_order::b_then_a_fused: return "b_then_a_fused";
  }
  return "";
}

/// Step at which C is added.
enum class addend : std::uint8_t {
  last,   ///< y = RN(y + C) after scales: beta = 1 of a BLAS
  first,  ///< the sum starts from C, as in an instruction; scales only with exact
};
inline constexpr int addend_count = 2;

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
