// Conditions on figures, as --fail-if and --need take them: 'underflow>1%', 'fp16.sqnr<30dB'.
#include "fpinspect/verdict/gate/condition.hpp"

#include <charconv>

namespace fpinspect {
namespace {

constexpr std::array<std::pair<std::string_view, relation>, 4> relations = {
    {{"<=", relation::at_most},
     {">=", relation::at_least},
     {"<", relation::less},
     {">", relation::greater}}};

std::string without_spaces(std::string_view text) {
  std::string packed(text);
  std::erase(packed, ' ');
  return packed;
}

bool is_name(std::string_view text) {
  constexpr std::string_view known = "abcdefghijklmnopqrstuvwxyz0123456789-_";
  return !text.empty() && lower(text).find_first_not_of(known) == std::string::npos;
}

/// A finite number >= 0 and its unit. Spaces are ignored. Nothing for any other text.
std::optional<quantity> parse_quantity(std::string_view text) {
  const std::string packed = without_spaces(text);
  quantity result;
  const char* const last = packed.data() + packed.size();
  const auto [end, error] = std::from_chars(packed.data(), last, result.number);
  if (error != std::errc{} || !std::isfinite(result.number) || std::signbit(result.number)) {
    return std::nullopt;
  }
  result.unit.assign(end, last);
  const bool known = result.unit.empty() || result.unit == "%" || result.unit == "dB";
  return known ? std::optional(result) : std::nullopt;
}

}  // namespace

std::optional<condition> parse_condition(std::string_view text) {
  condition result = {.text = without_spaces(text)};
  const std::string_view all = result.text;
  const std::size_t at = all.find_first_of("<>");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = all.substr(at);
  for (const auto& [sign, how] : relations) {
    if (!rest.starts_with(sign)) continue;
    result.how = how;
    rest.remove_prefix(sign.size());
    break;
  }
  const auto limit = parse_quantity(rest);
  std::string_view name = all.substr(0, at);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) {
    result.subject = name.substr(0, dot);
    if (result.subject.empty()) return std::nullopt;
    name.remove_prefix(dot + 1);
  }
  if (!limit || !is_name(name)) return std::nullopt;
  result.figure = name;
  result.limit = *limit;
  return result;
}

bool condition::holds(double value, double whole) const {
  const bool share = limit.unit == "%";
  const double left_side = share ? 100.0 * value : value;
  // Of no elements, a share is 0 %.
  const double right_side = share ? limit.number * (whole > 0 ? whole : 1) : limit.number;
  switch (how) {
    case relation::less: return left_side < right_side;
    case relation::at_most: return left_side <= right_side;
    case relation::greater: return left_side > right_side;
    case relation::at_least: return left_side >= right_side;
  }
  return false;
}

std::vector<condition> conditions_argument(const std::vector<std::string>& texts,
                                           std::span<const figure_spec> figures) {
  std::vector<condition> result;
  for (const std::string& text : texts) {
    const auto c = parse_condition(text);
    const figure_spec* known = nullptr;
    for (const figure_spec& f : figures) {
      if (c && c->figure == f.name) known = &f;
    }
    if (known == nullptr || (!c->limit.unit.empty() && c->limit.unit != known->unit)) {
      throw usage_error("--fail-if: \"", text, "\" is not like 'underflow>1%', with one of ",
                        joined(figures, [](const figure_spec& f) { return f.name; }));
    }
    if (!c->subject.empty() && !known->has_subject) {
      throw usage_error("--fail-if: \"", text, "\": ", known->name,
                        " is not a figure of a format; leave \"", c->subject, ".\" out");
    }
    result.push_back(*c);
  }
  return result;
}

need need_argument(const std::vector<std::string>& texts) {
  need result;
  for (const std::string& text : texts) {
    const auto level = parse_quantity(text);
    const auto limit = parse_condition(text);
    if (level && level->unit == "dB") {
      result.db = level->number;
    } else if (limit && limit->subject.empty() && limit->figure == "underflow" &&
               limit->how == relation::less && limit->limit.unit == "%") {
      result.underflow_percent = limit->limit.number;
    } else {
      throw usage_error("--need: \"", text, "\" is neither like 30dB nor like 'underflow<1%'");
    }
  }
  return result;
}

}  // namespace fpinspect
