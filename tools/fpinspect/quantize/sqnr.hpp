// Signal-to-noise ratios, and why there is none.
#pragma once

#include <optional>
#include <string>

#include "samebits/quantize.hpp"

namespace fpinspect {

/// 10 * log10(signal / noise) in dB; nothing where there is no noise, no signal or the sums leave
/// binary64.
std::optional<double> sqnr_db(double signal, double noise);

/// A ratio, or the reason why there is none.
struct sqnr {
  std::optional<double> db = {};
  bool exact = false;       ///< no element changed
  std::string reason = {};  ///< of neither; a sentence without its full stop

  /// "34.2 dB", "exact" or `none`.
  [[nodiscard]] std::string text(const char* none = "-") const;
  /// What JSON says beside a null: "exact", the reason, or nothing where there is a number.
  [[nodiscard]] std::optional<std::string> note() const;
};

/// What the statistics of a quantization say.
///
/// saturating  whether elements beyond the largest code become that code; those that become Inf or
///             NaN instead are missing from the sums, and then there is no ratio
sqnr sqnr_of(const samebits::quantize_statistics& s, bool saturating);

}  // namespace fpinspect
