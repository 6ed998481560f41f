// Random choices from a source of uniform 64-bit words.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>

#include "samebits/core/rounding.hpp"

namespace samebits::support {

/// Uniform random 64-bit words.
using word_source = std::function<std::uint64_t()>;

/// Words of the standard engine of 64 bits.
word_source words_from(std::uint64_t seed);

/// A number in [0, limit).
inline std::int64_t below(std::int64_t limit, const word_source& next) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
}

/// An element of an array or a vector.
template <class Values>
auto one_of(const Values& values, const word_source& next) {
  return std::data(values)[next() % std::size(values)];
}

template <class Enum>
Enum any_enumerator(const word_source& next) {
  return static_cast<Enum>(below(enum_count<Enum>, next));
}

/// A 64-bit number for seeds, streams and offsets: uniform, small, or beside 2^32 or 2^64.
inline std::uint64_t draw_number(const word_source& next) {
  const std::uint64_t small = next() % 8;
  switch (below(4, next)) {
    case 0: return small;
    case 1: return (std::uint64_t{1} << 32) - 4 + small;
    case 2: return std::uint64_t{0} - small;
    default: return next();
  }
}

/// Any seed, stream, offset and K; a pitch in half of the cases.
inline random_stream draw_random_stream(const word_source& next) {
  random_stream r;
  r.seed = draw_number(next);
  r.stream = draw_number(next);
  r.offset = draw_number(next);
  if (below(2, next) == 0) r.pitch = draw_number(next);
  r.bits = 1 + static_cast<int>(below(32, next));
  return r;
}

}  // namespace samebits::support
