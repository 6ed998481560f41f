// The results that no rounding decides: NaN, infinity, overflow and signed codes (contract §2, §4).
#pragma once

#include <cstdint>

#include "oracle/format_table.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

/// The code of a magnitude with a sign. e8m0 has no sign and fnuz no -0: there it is dropped.
std::uint64_t with_sign(const format& to, bool negative, std::uint64_t magnitude_code);

/// What a NaN becomes.
std::uint64_t nan_result(const format& to, bool negative, const cast_rule& rule);

/// What an exactly infinite value becomes, in every rounding mode.
std::uint64_t infinite_result(const format& to, bool negative, const cast_rule& rule);

/// What a finite value becomes whose rounded magnitude exceeds max finite.
std::uint64_t overflow_result(const format& to, bool negative, const cast_rule& rule);

/// Whether contract §3 goes away from zero, to q + 1, from a number between the grid points q and
/// q + 1. `to_half` is below, at or above 0 as the number is below, at or above their midpoint. Throws
/// std::invalid_argument for rounding::stochastic, which depends on random bits.
bool goes_away(rounding mode, int to_half, bool q_is_odd, bool negative);

/// Whether the mode never overflows to Inf or NaN on that sign. Beyond max finite, a number counts as
/// above the midpoint behind an odd q.
bool keeps_finite(rounding mode, bool negative);

/// Throws std::invalid_argument if a member is not one of its enumerators.
void require_valid(const cast_rule& rule);

}  // namespace samebits::oracle
