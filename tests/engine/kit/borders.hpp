// Inputs at the border of a rounding: one source code more or less changes the result.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/kit/specifications.hpp"

namespace samebits::testkit {

/// Two codes on either side of each change of a deterministic conversion's result, sorted; and NaNs:
/// every payload of one bit or of all but one, both signs. The source is fp32, tf32 or fp64.
code_list codes_around_changes(const conversion_under_test& conversion);

/// The two source codes around the decision of one element.
struct decision_border {
  std::uint64_t away;    ///< the first code that the element's own random bits round away from zero
  std::uint64_t toward;  ///< the code before: rounded toward zero
};

/// Returns the border between the two target codes around `code`, for the random bits of index
/// random.offset + position. The border has the sign of `code`. Returns nothing if `code` has no
/// finite neighbours in both formats, or if no code between them is rounded away.
std::optional<decision_border> border_beside(const conversion_under_test& conversion,
                                             std::uint64_t position, std::uint64_t code);

/// Returns a border at which K - 1 random bits decide otherwise than K, if the source format has
/// such a code below the target's smallest number.
///
/// Away from zero means floor(v * 2^K) + R >= 2^K. For odd R, the code with v = 1 - R / 2^K exactly
/// tells K from K - 1. Below the target's smallest number, v is the code itself times a power of
/// two, so v may have more than K fraction bits.
std::optional<decision_border> border_of_last_bit(const conversion_under_test& conversion,
                                                  std::uint64_t position);

}  // namespace samebits::testkit
