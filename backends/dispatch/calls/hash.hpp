// Hashes of arrays: the checked call that a backend receives.
#pragma once

#include <cstdint>
#include <span>

#include "samebits/hash.hpp"

namespace samebits::backends {

struct hash_call {
  std::span<const code_array> arrays;
  std::uint64_t* results;
};

}  // namespace samebits::backends
