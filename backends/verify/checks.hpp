// Checks: which conversions are compared on which inputs, and their headings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/verify/comparison.hpp"
#include "backends/verify/verify.hpp"

namespace samebits::backends::verification {

/// The comparisons under one heading, with one result per backend.
struct heading {
  std::string inputs;                          ///< "all 2^32 codes"
  std::string rules;                           ///< empty: the number of rules
  std::vector<comparison_result> per_backend;  ///< one per backend

  /// "fp32 to e4m3, all 2^32 codes, 36 rules", limited to what the backend supports.
  [[nodiscard]] std::string text(const comparison_result& t) const;
};

/// "e4m3, e5m2", or the number of formats if the list would be long.
std::string formats_text(const std::bitset<format_count>& formats);

/// Runs all checks and calls done(heading) for each completed one.
void run_all(comparer& backends, const effort& much,
             const std::function<void(const heading&)>& done);

}  // namespace samebits::backends::verification
