// The checks: which conversions are compared on which inputs, and under which headings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/verify/comparison.hpp"
#include "backends/verify/verify.hpp"

namespace samebits::backends::verification {

/// What is compared under one heading: an entry for each backend that has some of it.
struct heading {
  std::string inputs;          ///< "all 2^32 codes"
  std::string rules;           ///< empty: the number of rules
  std::vector<tally> tallies;  ///< one per backend

  /// "fp32 to e4m3, all 2^32 codes, 36 rules", by what the backend has.
  [[nodiscard]] std::string text(const tally& t) const;
};

/// "e4m3, e5m2", or how many where that would be long.
std::string formats_text(const std::bitset<format_count>& formats);

/// Runs all checks and calls done(heading) for each that is complete.
void run_all(comparer& backends, const effort& much,
             const std::function<void(const heading&)>& done);

}  // namespace samebits::backends::verification
