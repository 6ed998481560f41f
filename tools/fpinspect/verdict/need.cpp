// What a format must keep: implementation.
#include "fpinspect/verdict/need.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text.hpp"

namespace fpinspect {
namespace {

/// The number between a prefix and a suffix, if the text has that form. Spaces are ignored.
std::optional<double> number_between(std::string_view prefix, const std::string& text,
                                     std::string_view suffix) {
  std::string packed;
  for (const char c : text) {
    if (c != ' ') packed += c;
  }
  const std::string_view all = packed;
  if (!all.starts_with(prefix) || !all.ends_with(suffix)) return std::nullopt;
  if (all.size() <= prefix.size() + suffix.size()) return std::nullopt;
  const std::string_view digits =
      all.substr(prefix.size(), all.size() - prefix.size() - suffix.size());
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (!std::isfinite(number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace

bool need::allows(std::uint64_t lost, std::uint64_t nonzero) const {
  if (lost == 0) return true;
  return 100.0 * static_cast<double>(lost) < underflow_percent * static_cast<double>(nonzero);
}

need need_argument(const std::vector<std::string>& texts) {
  need result;
  for (const std::string& text : texts) {
    if (const auto db = number_between("", text, "dB")) {
      result.db = *db;
    } else if (const auto percent = number_between("underflow<", text, "%")) {
      result.underflow_percent = *percent;
    } else {
      throw usage_error(cat("--need: \"", text, "\" is neither like 30dB nor like 'underflow<1%'"));
    }
  }
  return result;
}

}  // namespace fpinspect
