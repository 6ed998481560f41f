// Conversion of one value: exact input, one rounding on the target's grid, then the policies.
#pragma once

#include <cstdint>

#include "oracle/exact.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

/// The code in `to` of the exact value x. `bits` is read by rounding::stochastic alone and must
/// then have count in 1..32 and value below 2^count. Throws std::invalid_argument on a bad
/// argument.
std::uint64_t round_exact(const format& to, const exact_value& x, const cast_rule& rule,
                          const random_bits& bits = {});

/// The code in `to` of the value of `code` in `from`: decode, then round_exact.
std::uint64_t convert(const format& from, const format& to, std::uint64_t code,
                      const cast_rule& rule, const random_bits& bits = {});

}  // namespace samebits::oracle
