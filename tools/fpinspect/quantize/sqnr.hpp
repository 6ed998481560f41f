// Signal-to-quantization-noise ratios, and why a ratio is missing.
#pragma once

#include <optional>
#include <string>

#include "samebits/cast_statistics.hpp"
#include "samebits/quantize.hpp"

namespace fpinspect {

/// 10 * log10(signal / noise) in dB. Nothing if there is no noise or no signal, or if the sums
/// overflow binary64.
std::optional<double> sqnr_db(double signal, double noise);

/// A ratio, or the reason why there is none.
struct sqnr {
  std::optional<double> db = {};
  bool exact = false;  ///< no element changed
  bool empty = false;  ///< there are no elements
  /// Why there is neither a ratio nor `exact`; a sentence without its full stop.
  std::string reason = {};

  /// The ratio for conditions: infinity if there is nothing to lose, minus infinity if it is
  /// missing for another reason, so that every `sqnr<X` holds.
  [[nodiscard]] double level() const;
  /// "34.2 dB", "exact" or `none`.
  [[nodiscard]] std::string text(const char* none = "-") const;
  /// The JSON note beside a null ratio: "exact" or the reason. Nothing if there is a ratio.
  [[nodiscard]] std::optional<std::string> note() const;
};

/// The ratio from the statistics of a quantization.
///
/// @param saturating  whether elements beyond the largest code become this code. Otherwise they
///   become Inf or NaN and are missing from the sums, and then there is no ratio.
sqnr sqnr_of(const samebits::quantize_statistics& s, bool saturating);

/// The ratio of a conversion that destroyed no element, else the reason why there is none.
sqnr sqnr_of(const samebits::cast_effect& effect, const samebits::cast_statistics& stats);

}  // namespace fpinspect
