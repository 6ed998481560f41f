// A GPU's tensor cores, simulated on the host by a rule.
#pragma once

#include <cstdint>

#include "numerics/hardware/accumulate.hpp"
#include "tensor_core_probe/device.hpp"
#include "tensor_core_probe/settings/setting.hpp"

namespace samebits::support {

/// What backends::tensor_cores::device::run returns of a GPU whose instruction is `truth`.
inline backends::tensor_cores::outcome simulated_outcome(const backends::tensor_cores::job& j,
                                                         const numerics::accumulate_rule& truth) {
  using namespace backends::tensor_cores;
  const auto rows = static_cast<std::size_t>(rows_of(j.what));
  const auto codes = [](const std::uint32_t* line, const format_spec& f, int count, auto& to) {
    for (int k = 0; k < count; ++k) {
      to[static_cast<std::size_t>(k)] = code_of(line, f.storage_bits, k);
    }
  };
  outcome out{};
  out.own.resize(j.tiles * rows * tile_columns);
  for (std::uint32_t tile = 0; tile < j.tiles; ++tile) {
    for (std::uint32_t p = 0; p < partners_of(j.tiles); ++p) {
      const std::uint32_t partner = (tile + p) % j.tiles;
      for (std::uint32_t r = 0; r < rows; ++r) {
        for (std::uint32_t c = 0; c < tile_columns; ++c) {
          case_codes x{};
          codes(j.a + (tile * rows + r) * line_words, truth.a, truth.products, x.a);
          codes(j.b + (partner * tile_columns + c) * line_words, truth.b, truth.products, x.b);
          const std::size_t at = (tile * rows + r) * tile_columns + c;
          x.c = j.c[at];
          const std::uint32_t got = result_of(truth, x);
          const std::uint32_t expected = result_of(j.rule, x);
          if (p == 0) out.own[at] = got;
          if (got == expected) continue;
          ++out.differing;
          if (out.first.size() < max_differences) {
            out.first.push_back({tile, partner, r, c, got, expected});
          }
        }
      }
    }
  }
  return out;
}

}  // namespace samebits::support
