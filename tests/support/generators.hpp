// Generators over bit patterns: codes that hit what conversions get wrong, rules and random bits.
//
// RapidCheck's own generators give hardly any NaN, subnormal or large integer. These generators
// choose one of the families below, each with the same probability, and then a random code of that
// family. Codes shrink toward fewer set mantissa bits, exponents nearer to 1 and a plus sign. The
// draw_... functions read a source of 64-bit words, so tests without RapidCheck can use them with a
// standard engine.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "support/conversion_case.hpp"

namespace samebits::support {

/// Uniform random 64-bit words.
using word_source = std::function<std::uint64_t()>;

/// Kinds of source codes, in view of a destination.
enum class code_family : std::uint8_t {
  uniform,   ///< all bits of the storage word, ignored ones too
  special,   ///< zeros, Inf, NaNs of every kind, subnormals, extremes of the source
  edge,      ///< the destination's extremes and what lies just beyond, and powers of two
  tie,       ///< halfway between neighbouring codes of the destination
  near_tie,  ///< one or two source ulps beside such a tie
  on_grid,   ///< a value of the destination, or up to two source ulps beside it
};

inline constexpr int code_family_count = 6;

/// A source code of one family. Where the source cannot hold a wanted value (a tie of a finer
/// destination, say) it gives the code nearest to it.
std::uint64_t draw_code(code_family family, format_id from, format_id to, const word_source& next);

/// K and R: every K; of R uniform bits, the extremes, and the values beside the one at which this
/// very conversion changes its result.
random_bits draw_random_bits(format_id from, format_id to, std::uint64_t code,
                             const word_source& next);

/// A 64-bit number for seeds, streams and offsets: uniform, small, or beside 2^32 or 2^64.
std::uint64_t draw_number(const word_source& next);

/// Codes simpler than this one, simplest first; empty when nothing is simpler. Following any chain
/// of them ends.
std::vector<std::uint64_t> simpler_codes(format_id from, std::uint64_t code);

/// What the formats and modes of a case are chosen from.
struct case_space {
  std::vector<format_id> from;
  std::vector<format_id> to;
  std::vector<rounding> modes;
};

/// Every format, every mode.
case_space whole_space();

/// Cases for the scalar functions, with random bits set where the mode is stochastic.
rc::Gen<conversion_case> cases(const case_space& space);

/// Codes of a source in view of a destination, from all families.
rc::Gen<std::uint64_t> codes(format_id from, format_id to);

}  // namespace samebits::support
