// Agreement: what a rank saw of a step as words whose maxima over ranks are what all of them saw.
//
// Maxima of unsigned words are exact and know no order, so any network may take them. An amax is
// its bit pattern, by which Inf is above every number and NaN above Inf: a maximum of floats may
// drop a NaN (NCCL's does), this one cannot.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/loss_scaling.hpp"

namespace samebits::numerics {

/// One message; minima travel as the maximum of what is left to 2^32 - 1, 0 where there is none.
struct agreement_message {
  std::uint32_t amax = 0;
  std::uint32_t nonfinite = 0;
  std::uint32_t loss_nonfinite = 0;
  std::uint32_t unscaled_nonfinite = 0;
  std::uint32_t first_bad = 0;
  std::uint32_t bad_rank = 0;
  std::uint32_t state = 0;  ///< anything that must be the same on every rank
  std::uint32_t not_state =
      ~0u;  ///< its complement, so that the maximum of both shows a difference
};
inline constexpr int agreement_words = 8;
static_assert(sizeof(agreement_message) == agreement_words * sizeof(std::uint32_t));

/// Positions beyond this one count as it.
inline constexpr std::int64_t last_position = 0xFFFFFFFE;

/// A position >= 0, or a negative number for none, as a word: the lower, the larger.
SAMEBITS_INLINE constexpr std::uint32_t position_word(std::int64_t position) {
  if (position < 0) return 0;
  const std::int64_t kept = position < last_position ? position : last_position;
  return 0xFFFFFFFFu - static_cast<std::uint32_t>(kept);
}
SAMEBITS_INLINE constexpr std::int64_t position_of(std::uint32_t word) {
  return word == 0 ? -1 : static_cast<std::int64_t>(0xFFFFFFFFu - word);
}

/// The rank that is to blame, as a word: one whose loss was not finite goes before the others, who
/// may have had their NaN from it in a sum of gradients; then the lower rank.
SAMEBITS_INLINE constexpr std::uint32_t blame_word(std::int64_t rank, bool loss_nonfinite) {
  const std::int64_t kept = rank < 0x7FFFFFFE ? rank : 0x7FFFFFFE;
  return (loss_nonfinite ? 0xFFFFFFFFu : 0x7FFFFFFFu) - static_cast<std::uint32_t>(kept);
}
SAMEBITS_INLINE constexpr std::int64_t blamed_rank(std::uint32_t word) {
  return word == 0 ? -1 : static_cast<std::int64_t>(0x7FFFFFFFu - (word & 0x7FFFFFFFu));
}

/// Without sign, NaN as the canonical one; an unknown amax is above NaN: where one rank does not
/// know its largest value, the largest of all is not known.
SAMEBITS_INLINE constexpr std::uint32_t amax_word(std::uint32_t amax) {
  if (amax == amax_unknown) return amax_unknown;
  const std::uint32_t m = binary32::magnitude(amax);
  return m > binary32::inf ? binary32::nan : m;
}

/// What `rank` saw. An Inf or NaN that its amax shows is a non-finite gradient too, so that it is
/// still seen where another rank's amax is not known.
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

/// What all ranks saw, from the maxima of their messages.
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

/// Whether every rank had the same state.
SAMEBITS_INLINE constexpr bool states_agree(const agreement_message& m) {
  return m.state == ~m.not_state;
}

}  // namespace samebits::numerics
