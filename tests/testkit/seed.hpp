// The seed of a check whose caller gives no seed.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <cstdlib>
#include <random>

namespace samebits::testkit {

/// Returns the seed of RC_PARAMS if the user set one, else a new seed. RapidCheck
/// prints each seed that its configuration generates, so the configuration is read only if
/// RC_PARAMS is set.
inline std::uint64_t new_seed() {
  if (std::getenv("RC_PARAMS") != nullptr) return rc::detail::configuration().testParams.seed;
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace samebits::testkit
