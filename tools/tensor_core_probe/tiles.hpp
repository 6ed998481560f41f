// Tiles of random operands in host memory, as a device multiplies them.
#pragma once

#include "tensor_core_probe/cases.hpp"

namespace samebits::backends::tensor_cores {

/// Tiles of one family. Line r of A and line r of B hold the operands of case r. C at row r, column
/// r modulo 8 belongs to case r; all other C belong to other cases.
struct random_tiles {
  std::vector<std::uint32_t> a, b, c;
};

/// Random tiles. The result depends on the arguments alone; several threads share the work.
random_tiles draw_tiles(instruction what, int family, std::uint64_t seed, std::uint32_t tiles);

/// The operands of one result of a job in host memory.
case_codes case_at(const job& j, const result_place& at);

}  // namespace samebits::backends::tensor_cores
