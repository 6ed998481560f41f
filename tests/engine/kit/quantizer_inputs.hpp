// Random matrices for quantizers.
#pragma once

#include "engine/core/choices.hpp"
#include "engine/kit/domain_codes.hpp"
#include "engine/kit/specifications.hpp"

namespace samebits::testkit {

/// Returns a random shape of at most `max_elements` elements. Sizes are 0, 1, random, or near
/// multiples of the tile's.
matrix_shape random_shape(const quantizer_under_test& quantizer, std::int64_t max_elements,
                          const support::word_source& next);

/// Returns a random matrix. Each tile has content of one kind: numbers of similar magnitude, zeros,
/// subnormal numbers, one outlier, few mantissa bits, ties once scaled, NaN and Inf among numbers,
/// or any codes. `number` determines the kind of the first tile: 8 matrices have all kinds.
trial random_matrix(const quantizer_under_test& quantizer, const domain_codes& domain,
                    const matrix_shape& shape, std::uint64_t number,
                    const support::word_source& next);

}  // namespace samebits::testkit
