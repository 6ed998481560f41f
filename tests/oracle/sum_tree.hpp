// The fixed sum of contract §6, every partial sum an exact sum rounded once.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/elementary.hpp"

namespace samebits::oracle {

/// The code of the root over codes in index order: level by level, neighbours 2j and 2j+1 become
/// RN(a + b), a lone last partial sum passes up unchanged. Empty: +0.
std::uint64_t sum_tree(std::vector<std::uint64_t> inputs, const format& f = fp64());

}  // namespace samebits::oracle
