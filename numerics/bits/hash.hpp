// Hash: a sum over codes and their places, which tells tensors apart wherever they lie.
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// 2^64 / golden ratio, odd: products by it modulo 2^64 are one-to-one.
inline constexpr std::uint64_t hash_factor = 0x9E3779B97F4A7C15;

/// The code that stands for a NaN of either sign and any payload.
///
/// @param code     zero-extended, of `bytes` bytes
/// @param largest  the code of +Inf, or of the largest finite number where there is no Inf; 0 for
///   codes without NaNs of several kinds, which are returned as they are
SAMEBITS_INLINE constexpr std::uint64_t one_nan(std::uint64_t code, int bytes,
                                                std::uint64_t largest) {
  const std::uint64_t magnitude = code & ((std::uint64_t{1} << (8 * bytes - 1)) - 1);
  return largest != 0 && magnitude > largest ? largest + 1 : code;
}

/// What the code at a place adds to a hash, modulo 2^64. For each place it is one-to-one, so tensors
/// that differ in one code have different hashes. The shift spreads codes of round numbers, which
/// end in zeros.
SAMEBITS_INLINE constexpr std::uint64_t hash_term(std::uint64_t code, std::uint64_t place) {
  std::uint64_t x = code * hash_factor;
  x ^= x >> 32;
  return x * ((place + 1) * hash_factor | 1);
}

}  // namespace samebits::numerics
