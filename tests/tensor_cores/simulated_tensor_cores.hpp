// A GPU's tensor cores, simulated on the host by a rule.
#pragma once

#include <cstdint>

#include "numerics/hardware/accumulate.hpp"
#include "tensor_core_probe/tiles.hpp"

namespace samebits::support {

/// What backends::tensor_cores::device::run returns of a GPU whose instruction is `truth`.
inline backends::tensor_cores::outcome simulated_outcome(const backends::tensor_cores::job& j,
                                                         const numerics::accumulate_rule& truth) {
  using namespace backends::tensor_cores;
  const std::size_t results = results_of(j);
  outcome out{};
  for (std::size_t index = 0; index < results; ++index) {
    for (std::uint32_t offset = 0; offset < partners_of(j.tiles); ++offset) {
      const result_place at = {index, (index / (results / j.tiles) + offset) % j.tiles};
      const case_codes x = case_at(j, at);
      const std::uint32_t got = result_of(truth, x);
      const std::uint32_t expected = result_of(j.rule, x);
      if (offset == 0) out.own.push_back(got);
      if (got == expected) continue;
      ++out.differing;
      if (out.first.size() < max_differences) out.first.push_back({at, got, expected});
    }
  }
  return out;
}

}  // namespace samebits::support
