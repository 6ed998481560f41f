// Checks: which calls are compared on which inputs, and their headings.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/verify/comparison.hpp"
#include "backends/verify/verify.hpp"

namespace samebits::backends::verification {

/// The comparisons under one heading, with one result per backend.
struct heading {
  std::string operation;  ///< "quantize "; empty for conversions
  std::string inputs;     ///< "all 2^32 codes"
  std::string rules;      ///< empty: the number of rules
  std::vector<tally> per_backend;

  /// "fp32 to e4m3, all 2^32 codes, 36 rules", limited to what the backend supports.
  [[nodiscard]] std::string text(const tally& t) const;
};
using done_function = std::function<void(const heading&)>;

/// Runs all checks of one kind and calls done(heading) for each completed one.
using check_function = void (*)(comparer& backends, const effort& much, const done_function& done);
void check_conversions(comparer& backends, const effort& much, const done_function& done);
void check_quantizations(comparer& backends, const effort& much, const done_function& done);

/// Compares each backend with the oracle. Each check has one entry for each backend that supports
/// any part of it. on_result (may be empty) is called with each completed entry.
std::vector<samebits::verification> run_checks(
    check_function checks, std::span<const backend* const> backends, const backend& oracle,
    const effort& much, int threads,
    const std::function<void(const samebits::verification&)>& on_result);

// Parts of check_conversions.

/// For each number of random bits: calls on whole rows, calls split into uneven parts, and column
/// shards of a larger tensor.
void check_stochastic(comparer& backends, const effort& much, const done_function& done);
/// Unaligned, padded, strided, transposed and repeating views, including partial vectors.
void check_views(comparer& backends, const done_function& done);

heading make_heading(const comparer& backends, std::string inputs, std::string rules = {},
                     std::string operation = {});

}  // namespace samebits::backends::verification
