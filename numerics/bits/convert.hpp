// Convert: turns a code of one format into a code of another, rounded once.
#pragma once

#include <cstdint>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// Decodes the code exactly into bits as wide as Word, then encodes these bits with one rounding.
/// Word must be std::uint64_t if either format is fp64. For all other formats std::uint32_t gives
/// the same codes as std::uint64_t.
template <class Word>
SAMEBITS_INLINE constexpr encoded<Word> convert(const format_spec& from, const format_spec& to,
                                                const cast_rule& rule, Word code, Word dither) {
  return encode<Word>(to, rule, decode<Word>(from, code), dither);
}

/// Converts a code in 64-bit words if either format is fp64, else in 32-bit words. `random` holds
/// the random bits for stochastic rounding as an integer in [0, 2^random.count).
SAMEBITS_INLINE constexpr encoded<std::uint64_t> convert_any(const format_spec& from,
                                                             const format_spec& to,
                                                             const cast_rule& rule,
                                                             std::uint64_t code,
                                                             const random_bits& random) {
  if (from.storage_bits == 64 || to.storage_bits == 64) {
    return convert<std::uint64_t>(from, to, rule, code,
                                  align_random<std::uint64_t>(random.value, random.count));
  }
  const auto r = convert<std::uint32_t>(from, to, rule, static_cast<std::uint32_t>(code),
                                        align_random<std::uint32_t>(random.value, random.count));
  return {r.code, r.inexact, r.overflow};
}

}  // namespace samebits::numerics
