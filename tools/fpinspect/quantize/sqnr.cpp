// Signal-to-noise ratios: implementation.
#include "fpinspect/quantize/sqnr.hpp"

#include <cmath>
#include <limits>

#include "fpinspect/cli/text/text.hpp"

namespace fpinspect {

std::optional<double> sqnr_db(double signal, double noise) {
  const bool usable = noise > 0.0 && signal > 0.0 && std::isfinite(noise) && std::isfinite(signal);
  if (!usable) return std::nullopt;
  return 10.0 * std::log10(signal / noise);
}

double sqnr::level() const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return db.value_or(exact || empty ? infinity : -infinity);
}

std::string sqnr::text(const char* none) const {
  if (db) return cat(fixed(*db, 1), " dB");
  return exact ? "exact" : none;
}

std::optional<std::string> sqnr::note() const {
  if (db) return std::nullopt;
  return exact ? "exact" : reason;
}

sqnr sqnr_of(const quantize_statistics& s, bool saturating) {
  if (s.elements == 0) return {.empty = true, .reason = "there are no elements"};
  if (!saturating && s.saturated != 0) {
    return {.reason = cat(s.saturated, " became Inf or NaN")};
  }
  if (const auto db = sqnr_db(s.signal, s.noise)) return {.db = db};
  if (s.nan + s.inf != 0) return {.reason = cat(s.nan + s.inf, " not finite")};
  if (s.underflowed != 0) return {.reason = cat(s.underflowed, " became 0")};
  if (s.noise == 0) return {.exact = true};
  return {.reason = "signal or noise is beyond binary64"};
}

sqnr sqnr_of(const cast_effect& effect, const cast_statistics& stats) {
  if (stats.count == 0) return {.empty = true, .reason = "there are no elements"};
  if (effect.changed == 0) return {.exact = true};
  std::string reason;
  const auto count = [&](std::uint64_t elements, const char* what) {
    if (elements != 0) reason += cat(reason.empty() ? "" : ", ", elements, " became ", what);
  };
  count(effect.underflow, "0");
  count(effect.to_inf, "Inf");
  count(effect.to_nan, "NaN");
  count(effect.to_max, "finite");
  if (!reason.empty()) return {.reason = reason};
  if (const auto db = sqnr_db(effect.signal, effect.noise)) return {.db = db};
  return {.reason = "signal or noise is beyond binary64"};
}

}  // namespace fpinspect
