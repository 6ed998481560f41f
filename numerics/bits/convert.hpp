// Convert: a code of one format into a code of another, rounded once.
#pragma once

#include <cstdint>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// Decodes exactly into bits as wide as Word and encodes those once. Word = std::uint64_t where
/// either format is fp64; std::uint32_t serves all others and gives the same codes.
template <class Word>
SAMEBITS_INLINE constexpr encoded<Word> convert(const format_spec& from, const format_spec& to,
                                                const cast_rule& rule, Word code, Word dither) {
  return encode<Word>(to, rule, decode<Word>(from, code), dither);
}

/// The same with the Word chosen by the formats and R not yet aligned.
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
