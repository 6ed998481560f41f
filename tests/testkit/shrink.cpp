// Shrinking by further calls of the function under test.
#include "shrink.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "borders.hpp"
#include "samebits/scalar.hpp"
#include "support/generators.hpp"

namespace samebits::testkit {
namespace {

constexpr std::size_t first_positions = 32;  // positions tried for a stochastic error

std::vector<trial> without_offsets(const trial& t) {
  std::vector<trial> simpler;
  if (t.in_offset != 0) simpler.push_back({t.codes, 0, t.out_offset});
  if (t.out_offset != 0) simpler.push_back({t.codes, t.in_offset, 0});
  return simpler;
}

/// Returns a call of the wrong element alone. For stochastic rounding, position 0 has other random
/// bits, so short calls follow that end with a code at the border of its own decision.
std::vector<trial> short_trials(const conversion_under_test& c, std::uint64_t wrong) {
  std::vector<trial> trials{{{wrong}, 0, 0}};
  if (c.rule.rounding != rounding::stochastic) return trials;
  const std::uint64_t one = convert_code(format_id::fp64, c.from, 0x3FF0000000000000u).code;
  for (std::size_t position = 0; position < first_positions; ++position) {
    for (const std::uint64_t beside : {one, wrong}) {
      const auto border = border_beside(c, position, beside);
      if (!border) continue;
      for (const std::uint64_t code : {border->away, border->toward}) {
        trials.push_back({std::vector<std::uint64_t>(position, one), 0, 0});
        trials.back().codes.push_back(code);
      }
    }
  }
  return trials;
}

}  // namespace

std::vector<trial> simpler_trials(format_id from, const trial& t) {
  std::vector<trial> simpler;
  const auto size = static_cast<std::ptrdiff_t>(t.codes.size());
  const auto keep = [&](std::ptrdiff_t first, std::ptrdiff_t last) {
    simpler.push_back(
        {{t.codes.begin() + first, t.codes.begin() + last}, t.in_offset, t.out_offset});
  };
  if (size > 1) {
    keep(0, size / 2);
    keep(size / 2, size);
    keep(0, size - 1);
    keep(1, size);
  }
  for (trial& other : without_offsets(t)) simpler.push_back(std::move(other));
  if (size > 4) return simpler;  // for large calls the size explains more than the values
  for (std::size_t i = 0; i < t.codes.size(); ++i) {
    for (const std::uint64_t code : support::simpler_codes(from, t.codes[i])) {
      simpler.push_back(t);
      simpler.back().codes[i] = code;
    }
  }
  return simpler;
}

failing_trial shrunk(trial_runner& runner, const domain_codes& domain, failing_trial found) {
  if (!found.errors.thrown.empty()) return found;
  bool threw = false;
  const auto replaces = [&](const trial& candidate) {
    const auto inside = [&](std::uint64_t code) { return domain.contains(code); };
    if (threw || !std::all_of(candidate.codes.begin(), candidate.codes.end(), inside)) return false;
    verdict now = runner.run(candidate);
    threw = !now.thrown.empty();
    if (threw || !now.failed()) return false;
    found = {candidate, std::move(now)};
    return true;
  };
  if (found.errors.wrong) {
    for (const trial& t : short_trials(runner.conversion(), found.errors.wrong->input)) {
      if (t.codes.size() < found.call.codes.size() && replaces(t)) break;
    }
    trial cut = found.call;  // without the elements after the wrong one
    cut.codes.resize(static_cast<std::size_t>(found.errors.wrong->position) + 1);
    if (cut.codes.size() < found.call.codes.size()) replaces(cut);
  }
  for (bool simpler = true; simpler;) {
    simpler = false;
    for (const trial& t : simpler_trials(runner.conversion().from, found.call)) {
      simpler = replaces(t);
      if (simpler) break;
    }
  }
  return found;
}

}  // namespace samebits::testkit
