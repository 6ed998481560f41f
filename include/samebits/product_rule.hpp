// How a matrix product was computed: its rule, found from its result.
//
//   // d = a * b + bias, computed by a GPU: which bits does a CPU compute in the same way?
//   const samebits::find_rule_options options = {.known = {.c = bias}};
//   const auto rules = samebits::find_rule(a, b, d, options);
//   if (rules.empty()) return;  // by no rule that samebits knows
//   std::cout << samebits::rule_text(rules.front()) << "\n";
//   // sum=tensor_core unit=hopper-wgmma slices=4 slice_tile=64
//   samebits::matmul(a, b, same_bits, rules.front(), options.known);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/core/accumulator.hpp"
#include "samebits/core/tensor_unit.hpp"
#include "samebits/matmul.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// How a product becomes the elements of D. The format of D is that of matmul()'s argument.
struct product_rule {
  accumulator sum;
  addend c_enters = addend::last;

  friend bool operator==(const product_rule&, const product_rule&) = default;
};

/// Computes matmul() by a rule. `options.c_enters` is the rule's.
inline void matmul(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
                   const product_rule& rule, matmul_options options = {},
                   const executor& where = {}) {
  options.c_enters = rule.c_enters;
  matmul(a, b, d, rule.sum, options, where);
}

/// Computes predict() by a rule. `options.c_enters` is the rule's.
inline prediction predict(const const_matrix_view& a, const const_matrix_view& b,
                          const matrix_view& d, const product_rule& rule,
                          matmul_options options = {}, const executor& where = {}) {
  options.c_enters = rule.c_enters;
  return predict(a, b, d, rule.sum, options, where);
}

/// Returns a rule as text, NAME=VALUE with spaces between: its kind, its unit or order, and all
/// members that differ from their defaults. Names are those of option_table<product_rule>.
std::string rule_text(const product_rule& rule);

/// Returns the rule of a text such as rule_text() returns.
///
/// @throws invalid_argument, listing what is allowed, if the text does not start with sum=, or a
///   name or a value is none.
product_rule parse_rule(std::string_view text);

/// What find_rule() knows of a product, and how far it searches.
struct find_rule_options {
  matmul_options known = {};  ///< scales and C; c_enters is searched
  /// The tensor cores that the product may have used.
  std::vector<tensor_unit> units = {tensor_unit::hopper_wgmma, tensor_unit::hopper_mma_sync};
  std::int64_t max_slices = 64;
  /// At most this many rows and columns of D are compared, evenly spaced; 0: all.
  std::int64_t sample = 16;
};

/// Returns the rules by which a * b + c has the elements of d, simplest first; none if no rule
/// fits.
///
/// Rules are searched by their number of slices, from 1 on; contiguous slices before cyclic ones.
/// The first division with a rule that fits ends the search, and all its rules that fit are
/// returned. Of rules that compute alike for this K, one is tried. Each division is tried with:
/// - chains of instructions of the units, FP32 operands as TF32; chains of fused multiply-adds in
///   binary32; for FP8 also promotion after 128 of K;
/// - for tensor cores, a residue of tiles of 8 to 128 first;
/// - for a D of 16 bits, roundings of slices to its format;
/// - every place of C.
/// Cyclic slices of single elements, as threads have them, are tried with promotion in binary32.
///
/// Scales that change along K allow only one slice, with promotion after 128 of K. A NaN equals
/// every NaN. Few elements, zeros or short sums let many rules fit: pass results of random
/// operands. Kernels whose blocks share a tile's K (`segment_k` in their name) are not covered.
///
/// @param a, b  the operands, as matmul() takes them
/// @param d  [M, N], the product, in fp32, fp16 or bf16
/// @param where  backend and threads
/// @throws invalid_argument as matmul() does; if max_slices < 1 or sample < 0; or if a unit is
///   none.
/// @note Host memory only. Thread-safe. Typically 1 ms to 1 s; without a rule up to some seconds.
std::vector<product_rule> find_rule(const const_matrix_view& a, const const_matrix_view& b,
                                    const const_matrix_view& d,
                                    const find_rule_options& options = {},
                                    const executor& where = {});

}  // namespace samebits
