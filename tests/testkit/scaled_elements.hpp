// The scaled elements of a quantization: the numbers that are cast to codes.
#pragma once

#include <cstdint>
#include <vector>

#include "quantize_trial.hpp"

namespace samebits::testkit {

/// Returns the number of the tile that holds element i; tiles count row by row.
std::size_t tile_of(const quantizer_under_test& quantizer, const code_matrix& in, std::size_t i);

/// Returns y of each element as fp32 codes, by the definition in numerics/quantize.
std::vector<std::uint64_t> scaled_elements(const quantizer_under_test& quantizer,
                                           const code_matrix& in);

/// Returns the amax of each tile, row-major: fp32 bits without a sign, or -1 if no element counts.
std::vector<std::int32_t> tile_amaxes(const quantizer_under_test& quantizer, const code_matrix& in);

}  // namespace samebits::testkit
