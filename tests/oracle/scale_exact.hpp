// Scale rules on 64-bit integers alone, quick enough for all 2^31 positive amaxes.
#pragma once

#include <cstdint>

#include "oracle/format_table.hpp"
#include "oracle/scale.hpp"

namespace samebits::oracle {

/// RN(a / b) as binary32 by one integer division with remainder. a and b are positive finite
/// binary32 codes.
std::uint32_t integer_quotient(std::uint32_t a, std::uint32_t b);

/// What scale_of_amax returns, for a positive finite amax; derived apart from it. `to` is e4m3 or
/// e5m2. Throws std::invalid_argument on another format, amax or rule.
tile_scale scale_exact(scale_rule rule, const format& to, std::uint32_t amax);

}  // namespace samebits::oracle
