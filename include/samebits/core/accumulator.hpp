// Accumulators: how the products of a matrix product are added up, named explicitly.
//
//   kind          what an element of D is before it is rounded to D's format
//   exact         the dot product and C, exactly; the one rounding is that to D's format
//   ieee_fp32     binary32 operations rounded to nearest even, in the order that fp32_order names
//   fp32_per_128  each 128 of K: their exact dot product, rounded once to binary32; these added in
//                 binary32, ascending
//   tensor_core   the instructions of a tensor core, ascending (samebits/core/tensor_unit.hpp);
//                 with a promotion of N their sum is added in binary32 after each N of K, and the
//                 next instruction starts from +0
#pragma once

#include <cstdint>
#include <string_view>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace samebits {

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

/// The order of ieee_fp32. `sum` begins as +0, or as C where C comes first.
enum class fp32_order : std::uint8_t {
  ascending,        ///< k = 0, 1, ...: sum = RN(sum + RN(a * b))
  ascending_fused,  ///< k = 0, 1, ...: sum = RN(sum + a * b), an fma
  tree,  ///< the tree of contract §6 over the RN(a * b), then RN(C + it) where C is first
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

/// How a partial sum p, the scales a and b of its operands and the sum y so far become the next y.
/// A scale that is not given is 1. Scales that do not change along K are applied at the end, to the
/// sum p of everything: y is +0 in the fused orders, so that no zero is -0, and the others leave
/// the addition out. cublaslt_order() (samebits/matmul.hpp) says which the vendor's library has.
enum class scale_order : std::uint8_t {
  product_fused,   ///< y = fma(p, RN(a * b), y): DeepGEMM's
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

/// Where C is added.
enum class addend : std::uint8_t {
  last,   ///< y = RN(y + C) after scales: a BLAS's beta = 1
  first,  ///< the sum starts from C, as an instruction takes it; no scales then
};
inline constexpr int addend_count = 2;

/// One way to accumulate; made by the functions below.
struct accumulator {
  accumulator_kind kind;
  fp32_order order = fp32_order::ascending;      ///< ieee_fp32 alone
  tensor_unit unit = tensor_unit::hopper_wgmma;  ///< this and the rest: tensor_core alone
  std::int64_t promotion = 0;                    ///< in elements of K; 0: none
  format_id result = format_id::fp32;            ///< of the unit's sums: fp32 or fp16
  /// That an instruction takes: the widest's, or those of the row's narrow one.
  int products = 0;  ///< 0: the widest's

  static constexpr accumulator exact() { return {accumulator_kind::exact}; }
  static constexpr accumulator ieee_fp32(fp32_order order) {
    return {accumulator_kind::ieee_fp32, order};
  }
  static constexpr accumulator fp32_per_128() { return {accumulator_kind::fp32_per_128}; }
  /// promotion: elements of K between promotions into binary32, a multiple of the instruction's
  /// products; 0: none. On Hopper cuBLASLt's FP8 products are hopper_wgmma with 128, or 0 where
  /// they accumulate fast; FP16 and BF16 products 0.
  static constexpr accumulator tensor_core(tensor_unit unit, std::int64_t promotion,
                                           format_id result = format_id::fp32, int products = 0) {
    return {
        accumulator_kind::tensor_core, fp32_order::ascending, unit, promotion, result, products};
  }
};

}  // namespace samebits
