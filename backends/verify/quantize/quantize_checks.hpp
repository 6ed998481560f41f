// Checks of quantization: which quantizations are compared on which inputs, and their headings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/verify/quantize/quantize_comparison.hpp"
#include "backends/verify/verify.hpp"

namespace samebits::backends::verification {

/// The comparisons under one heading, with one result per backend.
struct quantize_heading {
  std::string operation;  ///< "quantize"
  std::string how;        ///< "nearest_even"
  std::vector<quantize_result> per_backend;

  /// "quantize fp32, fp16, bf16 to e4m3, e5m2, 18 tiles, 4 scale rules, nearest_even".
  [[nodiscard]] std::string text(const quantize_result& t) const;
};

/// Runs all checks and calls done(heading) for each completed one.
void run_all(quantize_comparer& backends, const effort& much,
             const std::function<void(const quantize_heading&)>& done);

}  // namespace samebits::backends::verification
