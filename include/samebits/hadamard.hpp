// The random Hadamard transform of 16 elements, as TransformerEngine applies it before it quantizes to
// NVFP4.
//
//   samebits::random_hadamard(in, out);  // bf16 to bf16, the sum of a tensor core
//
// Each group of 16 neighbouring elements of a row becomes x * diag(signs) * H, where H is the
// Sylvester matrix of +1/4 and -1/4. TransformerEngine transforms along the axis over which the
// product for the weights' gradient sums, and its signs are fixed: 0xD7E8 for every layer and run.
#pragma once

#include <cstdint>

#include "samebits/backend.hpp"
#include "samebits/core/accumulator.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// TransformerEngine's signs: bit i is set if element i is negated.
inline constexpr std::uint16_t transformer_engine_signs = 0xD7E8;

/// Multiplies each group of 16 elements of a row by diag(signs) * H.
///
/// @param in  [rows, cols] in bf16, host memory, any strides; cols a multiple of 16
/// @param out  [rows, cols] in bf16 or fp32, host memory; must not overlap `in`
/// @param signs  bit i is set if element i of a group is negated
/// @param sum  how the 16 products are added: one instruction of a tensor core, from +0, then one
///   rounding to the format of `out`
/// @param where  backend and threads
/// @throws invalid_argument, before anything is written, if a format, shape or accumulation is not
///   allowed; as matmul() does otherwise.
/// @note evidence_of(sum, bf16, bf16) of samebits/matmul.hpp says how well the unit is known.
void random_hadamard(
    const const_matrix_view& in, const matrix_view& out,
    std::uint16_t signs = transformer_engine_signs,
    const accumulator& sum = accumulator::tensor_core(tensor_unit::blackwell_mma_sync, 0),
    const executor& where = {});

}  // namespace samebits
