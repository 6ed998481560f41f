// Agreement: encodes what one rank observed in a step as unsigned words. The maxima of these words
// over all ranks decode to what all ranks together observed.
//
// A maximum of unsigned words is exact and independent of order, so any network may compute it. An
// amax travels as its bit pattern, in which Inf is above every number and NaN above Inf. A
// floating-point maximum may drop a NaN (NCCL's does); this integer maximum cannot.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/loss_scaling.hpp"

namespace samebits::numerics {

/// The message of one rank. A minimum over ranks is sent as the maximum of 2^32 - 1 - value; 0
/// means no value.
struct agreement_message {
  std::uint32_t amax = 0;
  std::uint32_t nonfinite = 0;
  std::uint32_t loss_nonfinite = 0;
  std::uint32_t unscaled_nonfinite = 0;
  std::uint32_t first_bad = 0;
  std::uint32_t bad_rank = 0;
  std::uint32_t state = 0;        ///< a word that must be equal on every rank
  std::uint32_t not_state = ~0u;  ///< complement of `state`: the maxima of both show a difference
};
inline constexpr int agreement_words = 8;
static_assert(sizeof(agreement_message) == agreement_words * sizeof(std::uint32_t));

/// Largest position a message can hold; larger positions are sent as this one.
inline constexpr std::int64_t last_position = 0xFFFFFFFE;

/// Encodes a position >= 0 as a word: a lower position gives a larger word. A negative position
/// means none and gives 0.
SAMEBITS_INLINE constexpr std::uint32_t position_word(std::int64_t position) {
  if (position < 0) return 0;
  const std::int64_t kept = position < last_position ? position : last_position;
  return 0xFFFFFFFFu - static_cast<std::uint32_t>(kept);
}
SAMEBITS_INLINE constexpr std::int64_t position_of(std::uint32_t word) {
  return word == 0 ? -1 : static_cast<std::int64_t>(0xFFFFFFFFu - word);
}

/// Encodes the rank to blame as a word. A rank with a non-finite loss has priority: the NaNs of
/// other ranks may come from it through a sum of gradients. Among equals the lower rank wins.
SAMEBITS_INLINE constexpr std::uint32_t blame_word(std::int64_t rank, bool loss_nonfinite) {
  const std::int64_t kept = rank < 0x7FFFFFFE ? rank : 0x7FFFFFFE;
  return (loss_nonfinite ? 0xFFFFFFFFu : 0x7FFFFFFFu) - static_cast<std::uint32_t>(kept);
}
SAMEBITS_INLINE constexpr std::int64_t blamed_rank(std::uint32_t word) {
  return word == 0 ? -1 : static_cast<std::int64_t>(0x7FFFFFFFu - (word & 0x7FFFFFFFu));
}

/// An amax as a word: without sign, NaN as the canonical NaN. An unknown amax is above NaN: if one
/// rank's amax is unknown, the maximum over all ranks is unknown.
SAMEBITS_INLINE constexpr std::uint32_t amax_word(std::uint32_t amax) {
  if (amax == amax_unknown) return amax_unknown;
  const std::uint32_t m = binary32::magnitude(amax);
  return m > binary32::inf ? binary32::nan : m;
}

/// Encodes the observation of `rank`. An amax of Inf or NaN also sets `nonfinite`, so that the
/// error is seen even if another rank's amax is unknown.
SAMEBITS_INLINE constexpr agreement_message message_of(const rank_observation& mine,
                                                       std::int64_t rank, std::uint32_t state) {
  const step_observation& seen = mine.seen;
  const std::uint32_t amax = amax_word(seen.amax);
  const bool nonfinite = seen.nonfinite || (amax != amax_unknown && amax >= binary32::inf);
  const bool bad =
      nonfinite || seen.loss_nonfinite || seen.unscaled_nonfinite || mine.first_bad >= 0;
  agreement_message m;
  m.amax = amax;
  m.nonfinite = nonfinite ? 1 : 0;
  m.loss_nonfinite = seen.loss_nonfinite ? 1 : 0;
  m.unscaled_nonfinite = seen.unscaled_nonfinite ? 1 : 0;
  m.first_bad = position_word(mine.first_bad);
  m.bad_rank = bad ? blame_word(rank, seen.loss_nonfinite) : 0;
  m.state = state;
  m.not_state = ~state;
  return m;
}

/// Decodes the observation of all ranks from the maxima of their messages.
SAMEBITS_INLINE constexpr rank_observation observation_of(const agreement_message& m) {
  rank_observation all;
  all.seen.nonfinite = m.nonfinite != 0;
  all.seen.loss_nonfinite = m.loss_nonfinite != 0;
  all.seen.unscaled_nonfinite = m.unscaled_nonfinite != 0;
  all.seen.amax = m.amax;
  all.first_bad = position_of(m.first_bad);
  all.bad_rank = blamed_rank(m.bad_rank);
  return all;
}

/// Whether every rank sent the same state.
SAMEBITS_INLINE constexpr bool states_agree(const agreement_message& m) {
  return m.state == ~m.not_state;
}

}  // namespace samebits::numerics
