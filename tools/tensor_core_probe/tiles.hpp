// Tiles of drawn operands on the host, as a device multiplies them.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor_core_probe/cases.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

/// Tiles of one family: line r of A is of case r, and so are line r of B and the C of row r and
/// column r modulo 8; the other C are of other cases.
struct drawn_tiles {
  std::vector<std::uint32_t> a, b, c;
};

/// Everything follows from the arguments; several threads draw.
drawn_tiles draw_tiles(instruction what, family how, std::uint64_t seed, std::uint32_t tiles);

/// The operands of row and column of a tile.
case_codes case_at(const drawn_tiles& drawn, instruction what, std::uint32_t tile,
                   std::uint32_t partner, int row, int column);

/// Where C and results of a row and column lie.
std::size_t place_of(instruction what, std::uint32_t tile, int row, int column);

}  // namespace samebits::backends::tensor_cores
