// What conversions and quantizers under test must give: the results of the library.
#pragma once

#include <cstdint>

#include "engine/kit/runner.hpp"
#include "samebits/backend.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/testkit/conversion.hpp"
#include "samebits/testkit/quantize.hpp"

namespace samebits::testkit {

/// The random bits of the element at `position` of a conversion; none without stochastic rounding.
random_bits random_at(const conversion_under_test& c, std::uint64_t position);
/// The code of an input at a position.
std::uint64_t converted_code(const conversion_under_test& c, std::uint64_t input,
                             std::uint64_t position);

/// Rows and columns of a tile of a matrix. 0 becomes the extent of the matrix.
matrix_shape tile_extent(const trial& in, const tile_shape& tile);

/// Results [codes] by samebits::convert() on a backend.
specification specification_of(const conversion_under_test& conversion,
                               const executor& where = {"reference"});
/// Results [scales, codes] by samebits::quantize() on backend "reference".
specification specification_of(const quantizer_under_test& quantizer);

}  // namespace samebits::testkit
