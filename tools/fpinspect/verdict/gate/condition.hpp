// Conditions on figures, as --fail-if and --need take them: 'underflow>1%', 'fp16.sqnr<30dB'.
#pragma once

#include "fpinspect/common.hpp"

namespace fpinspect {

enum class relation : std::uint8_t { less, at_most, greater, at_least };

/// A number and its unit: 30dB, 1%, 5.
struct quantity {
  double number = 0;
  std::string unit = {};  ///< "dB", "%" or empty
};

/// A condition [SUBJECT.]FIGURE RELATION QUANTITY.
struct condition {
  std::string text;          ///< as given, without spaces
  std::string subject = {};  ///< a format such as "fp16"; empty if the condition names none
  std::string figure = {};   ///< "underflow"
  relation how = relation::greater;
  quantity limit = {};

  /// Whether `value` is in this relation to the limit. In per cent, it is a share of `whole`.
  [[nodiscard]] bool holds(double value, double whole) const;
};

/// Nothing for a text that is not a condition.
std::optional<condition> parse_condition(std::string_view text);

/// A figure that conditions may name, and the unit of its limit.
struct figure_spec {
  std::string_view name;
  std::string_view unit;     ///< "%": the limit is a count without it; "dB": it may be left out
  bool has_subject = false;  ///< whether a format may stand before the name
};

/// The conditions of --fail-if.
/// @throws usage_error  if a text is not a condition on one of the figures
std::vector<condition> conditions_argument(const std::vector<std::string>& texts,
                                           std::span<const figure_spec> figures);

/// The least that a choice must keep of every tensor.
struct need {
  double db = 30.0;                ///< the SQNR must be at least this
  double underflow_percent = 1.0;  ///< of the non-zero elements, fewer than this may become 0

  /// Whether `lost` of `nonzero` elements are few enough. No loss always is.
  [[nodiscard]] bool allows(std::uint64_t lost, std::uint64_t nonzero) const {
    if (lost == 0) return true;
    return 100.0 * static_cast<double>(lost) < underflow_percent * static_cast<double>(nonzero);
  }
};

/// The default, changed by each text in turn.
/// @throws usage_error  if a text is neither NUMBERdB nor underflow<NUMBER%
need need_argument(const std::vector<std::string>& texts);

}  // namespace fpinspect
