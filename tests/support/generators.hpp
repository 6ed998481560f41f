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
#include <utility>
#include <vector>

#include "engine/inputs/families.hpp"
#include "oracle/arithmetic.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "support/conversion_case.hpp"

namespace samebits::support {

/// Uniform K or small ones, which hit the decision often; R uniform or extreme.
random_bits draw_random(const word_source& next);

/// The same, or in half of the cases R beside the one at which this very result changes.
random_bits draw_random_at(const oracle::placed_outcome& placed, const word_source& next);
random_bits draw_random_bits(format_id from, format_id to, std::uint64_t code,
                             const word_source& next);

/// Cases of draw(words), which shrink to simpler(case), simplest first, again and again. Every chain
/// of simpler cases must end.
template <class Case>
rc::Gen<Case> case_generator(std::function<Case(const word_source&)> draw,
                             std::function<std::vector<Case>(const Case&)> simpler) {
  return [draw = std::move(draw), simpler = std::move(simpler)](const rc::Random& random, int) {
    rc::Random state = random;
    return rc::shrinkable::shrinkRecur(
        draw([&state] { return state.next(); }),
        [simpler](const Case& from) { return rc::seq::fromContainer(simpler(from)); });
  };
}

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
