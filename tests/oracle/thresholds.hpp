// A whole conversion as a step function: exact thresholds between neighbouring codes (contract
// §10).
//
// In every deterministic mode the result depends on the source magnitude through finitely many
// jumps. Here they are found once, from the destination's grid, so that a test can check all 2^32
// inputs by walking two sorted lists side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/format_table.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

/// From magnitude code `first` (sign cleared) up to the next step, the result is `code`.
struct step {
  std::uint32_t first = 0;
  std::uint32_t code = 0;

  friend bool operator==(const step&, const step&) = default;
};

/// One conversion in one deterministic rule. The steps of a sign are sorted by `first`, cover every
/// finite magnitude code of the source and never repeat a result in a row. `positive` starts at
/// code 0; `negative` at code 0 (-0), at 1 where the source has no -0 (fnuz), and is empty where it
/// has no sign (e8m0). The four specials are filled even where the source has no such code.
struct step_function {
  const format* from = nullptr;
  const format* to = nullptr;
  cast_rule rule;
  std::vector<step> positive;
  std::vector<step> negative;
  std::uint32_t pos_inf = 0;
  std::uint32_t neg_inf = 0;
  std::uint32_t pos_nan = 0;
  std::uint32_t neg_nan = 0;
};

/// Destinations with more magnitudes than this are refused (fp32, fp64); tf32 has 261120.
inline constexpr std::uint64_t max_destination_magnitudes = std::uint64_t{1} << 20;

/// Throws std::invalid_argument for rounding::stochastic, for fp64 as a source, and for a
/// destination of more than max_destination_magnitudes. `from` and `to` must be rows of
/// format_table.
step_function make_step_function(const format& from, const format& to, const cast_rule& rule);

/// The result for one source code; the bits that contract §1 ignores are ignored here too.
std::uint64_t evaluate(const step_function& f, std::uint32_t source_code);

}  // namespace samebits::oracle
