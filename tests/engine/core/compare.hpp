// Compares a target with a judge: problems in batches, each copied to the target and back once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "engine/core/problem.hpp"

namespace samebits::support {

/// What a batch showed.
struct comparison {
  std::string text = {};  ///< the first difference; empty if there is none
  std::size_t failing = 0;
  std::uint64_t elements = 0;  ///< of all buffers, compared with the judge's
};

/// Makes the calls of all problems on the target, and those of the judge in a copy of the memory.
comparison compare(std::span<const problem> problems, array_target& target,
                   const array_target& judge);

/// Calls f(i) for [0, count) on all processors; throws what one of them threw.
void for_each_of(std::size_t count, const std::function<void(std::size_t)>& f);

}  // namespace samebits::support
