// Tiles of random operands in host memory, as a device multiplies them.
#pragma once

#include "tensor_core_probe/cases.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

/// Tiles of one family. Line r of A and line r of B hold the operands of case r. C at row r, column
/// r modulo 8 belongs to case r; all other C belong to other cases.
struct random_tiles {
  std::vector<std::uint32_t> a, b, c;
};

/// Random tiles. The result depends on the arguments alone; several threads share the work.
random_tiles draw_tiles(instruction what, family how, std::uint64_t seed, std::uint32_t tiles);

/// The operands of one result: row of A of `tile`, column of B of `partner`.
case_codes case_at(const random_tiles& operands, instruction what, std::uint32_t tile,
                   std::uint32_t partner, int row, int column);

/// Index of C, and of the result, at a row and column of a tile.
std::size_t result_index(instruction what, std::uint32_t tile, int row, int column);

}  // namespace samebits::backends::tensor_cores
