// The random bits of contract §3: Philox4x32-10 and the mapping from an element's index to R.
#pragma once

#include <array>
#include <cstdint>

#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

/// Philox4x32 (Salmon et al., SC 2011) with counter words c0..c3 and key words k0, k1.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key, int rounds = 10);

/// R of one element: the top K bits of its field. Throws std::invalid_argument unless K is 1..32.
std::uint32_t random_word(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, int k);

/// offset + row * pitch + column (mod 2^64); an absent pitch is the column count.
std::uint64_t element_index(const random_stream& s, std::uint64_t row, std::uint64_t column,
                            std::uint64_t columns);

}  // namespace samebits::oracle
