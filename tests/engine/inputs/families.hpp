// Families of codes that hit what conversions get wrong, and codes simpler than a given one.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/choices.hpp"
#include "samebits/core/format.hpp"

namespace samebits::support {

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

/// The same of any family.
std::uint64_t draw_any_code(format_id from, format_id to, const word_source& next);

/// Codes that a check of the format always tries, sorted, each with both signs: 0, 1, 1.5, the
/// smallest normal number, the largest one and Inf, with neighbours; every subnormal power of two;
/// every NaN of one payload bit. Ignored bits are 0.
std::vector<std::uint64_t> special_codes(format_id format);

/// Codes simpler than this one, simplest first: +0, then 1, then codes with fewer mantissa bits set,
/// an exponent nearer to that of 1, or a plus sign. Empty when nothing is simpler. Following any
/// chain of them ends.
std::vector<std::uint64_t> simpler_codes(format_id from, std::uint64_t code);

}  // namespace samebits::support
