// `fpinspect resolution`: the values of a format in an interval, and the spacing at numbers.

#include "fpinspect/cli/command.hpp"
#include "fpinspect/formats/describe.hpp"

namespace fpinspect {
namespace {

// --- The resolution of a format: computation -----------------------------------------------------

/// Values of a format with equal spacing, in rising order.
struct even_values {
  double first;
  double last;
  std::uint64_t count;
  int spacing_log2;  ///< log2 of the distance to the next value
};

/// The values of a format in an interval [from, to), 0 <= from < to.
struct interval_values {
  std::uint64_t count = 0;
  std::uint64_t first_code = 0;       ///< of the smallest value; the codes of the others follow it
  std::vector<even_values> spacings;  ///< all values, by spacing
};

/// Where a number lies between its neighbours.
struct spot {
  std::uint64_t below = 0;  ///< code of the largest value <= x
  std::uint64_t above = 0;  ///< code of the smallest value >= x
  std::uint64_t nearest = 0;
  /// log2 of the distance from the largest value <= x to the next one; nothing if there is no next
  /// one.
  std::optional<int> spacing_log2;
};

converted round_to(format_id format, double x, rounding mode) {
  const cast_rule rule{.rounding = mode};
  return convert_code(format_id::fp64, format, __builtin_bit_cast(std::uint64_t, x), rule);
}

/// Codes of values >= 0 without padding are consecutive integers, in the order of the values.
std::uint64_t index_of(format_id format, std::uint64_t code) {
  return code >> spec_of(format).padding_bits;
}
std::uint64_t code_at(format_id format, std::uint64_t index) {
  return index << spec_of(format).padding_bits;
}

/// The index of the smallest value >= x, for x >= 0; one after the largest value if there is none.
std::uint64_t first_index(format_id format, double x) {
  const std::uint64_t end = index_of(format, max_finite(format)) + 1;
  if (x > decode_double(format, max_finite(format))) return end;
  return index_of(format, round_to(format, x, rounding::upward).code);
}

interval_values values_between(format_id format, double from, double to) {
  const std::uint64_t begin = first_index(format, from);
  const std::uint64_t end = first_index(format, to);
  interval_values values{end - begin, code_at(format, begin), {}};
  for (std::uint64_t index = begin; index < end;) {
    // Values with equal exponent field have equal spacing.
    const std::uint64_t binade = std::uint64_t{1} << spec_of(format).mantissa_bits;
    const std::uint64_t stop = std::min(end, (index / binade + 1) * binade);
    const double first = decode_double(format, code_at(format, index));
    const double last = decode_double(format, code_at(format, stop - 1));
    const std::uint64_t code =
        code_at(format, index);  // the largest: its binade continues below it
    const int spacing =
        *ulp_log2(format, code == max_finite(format) ? next_down(format, code) : code);
    auto& spacings = values.spacings;
    if (!spacings.empty() &&
        spacings.back().spacing_log2 == spacing) {  // subnormals, first normals
      spacings.back().last = last;
      spacings.back().count += stop - index;
    } else {
      spacings.push_back({first, last, stop - index, spacing});
    }
    index = stop;
  }
  return values;
}

/// Nothing if x is not between the smallest and the largest value of the format.
std::optional<spot> spot_of(format_id format, double x) {
  const converted below = round_to(format, x, rounding::downward);
  const converted above = round_to(format, x, rounding::upward);
  const double low = decode_double(format, below.code);
  const double high = decode_double(format, above.code);
  if (!(low <= x && x <= high) || !std::isfinite(low) || !std::isfinite(high)) return std::nullopt;
  spot found{below.code, above.code, round_to(format, x, rounding::nearest_even).code,
             std::nullopt};
  const auto next = finite_value(format, low != high ? above.code : next_up(format, below.code));
  if (next && *next > low) found.spacing_log2 = exponent_of(*next - low);
  return found;
}

// --- The subcommand ------------------------------------------------------------------------------

/// The largest N such that all integers from 1 to N are values of the format.
double largest_exact_integer(format_id format) {
  const double all_bits = std::ldexp(2.0, spec_of(format).mantissa_bits);
  return std::min(all_bits, std::floor(decode_double(format, max_finite(format))));
}

/// What rounding to nearest even makes of n points x_i = from + (to - from) * i / n, 0 <= i < n.
struct rounded_points {
  std::uint64_t points = 0;
  std::uint64_t distinct = 0;  ///< number of different results
  double max_error = 0;        ///< max |rounded - x|; infinite after an overflow
  double mean_error = 0;       ///< mean |rounded - x|
};

rounded_points round_points(format_id format, double from, double to, std::uint64_t points) {
  rounded_points result{points, 0, 0, 0};
  std::uint64_t previous = 0;
  double sum = 0;
  for (std::uint64_t i = 0; i < points; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(points);
    const double x = from + (to - from) * part;
    const std::uint64_t code = round_to(format, x, rounding::nearest_even).code;
    const double rounded = decode_double(format, code);
    const double error = std::isfinite(rounded) ? std::fabs(rounded - x) : HUGE_VAL;
    if (i == 0 || code != previous) ++result.distinct;
    result.max_error = std::max(result.max_error, error);
    sum += error;
    previous = code;
  }
  result.mean_error = points == 0 ? 0 : sum / static_cast<double>(points);
  return result;
}

double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

std::string spacing_text(int exponent) {
  return cat(power_text(exponent), " = ", general(power_of_two(exponent), 6));
}

constexpr column<even_values> spacing_columns[] = {
    {"", "", 2, nullptr, [](auto&) { return ""; }},
    {"first", "from", 13, [](auto& v) { return v.first; },
     [](auto& v) { return general(v.first, 6); }},
    {"last", "to", 13, [](auto& v) { return v.last; }, [](auto& v) { return general(v.last, 6); }},
    {"values", "values", -10, [](auto& v) { return v.count; }},
    {"spacing_log2", "", 0, [](auto& v) { return v.spacing_log2; }},
    {"", "", 2, nullptr, [](auto&) { return ""; }},
    {"spacing", "spacing", 0, [](auto& v) { return power_of_two(v.spacing_log2); },
     [](auto& v) { return spacing_text(v.spacing_log2); }},
};

class resolution_command final : public command {
  format_id& format_ = add.required("FORMAT", format_argument, "Name of the format");
  std::string& a_ = add.text("A", "Start of the interval (default: 1)");
  std::string& b_ = add.text("B", "End of the interval (default: 2)");
  text_list& at_ = add.list("--at", "Numbers whose neighbours and spacing are shown");
  std::uint64_t& point_count_ =
      add.value("--points", integer(1, 100'000'000), "Number of points that are rounded", "10000");
  bool& ascii_ = add.ascii();

 public:
  explicit resolution_command(option_list& list) : command(list) {
    add.exclude("--json", {"--ascii"});
  }

  void run(const session& s) {
    if (a_.empty() != b_.empty()) throw usage_error("B: needed after A; the interval is [A, B)");
    if (!a_.empty()) from_ = number_argument("A", a_);
    if (!b_.empty()) to_ = number_argument("B", b_);
    refuse_if(!(0 <= from_ && from_ < to_),
              "A and B: 0 <= A < B is expected; negative values mirror the positive ones");
    values_ = values_between(format_, from_, to_);
    points_ = round_points(format_, from_, to_, point_count_);
    for (const std::string& text : at_) {
      const double x = number_argument("--at", text);
      spots_.emplace_back(x, spot_of(format_, x));
    }
    s.write(json(), text(s.term));
  }

 private:
  using located = std::pair<double, std::optional<spot>>;

  [[nodiscard]] json_value spot_json(const located& at) const {
    const std::optional<spot>& where = at.second;
    const auto value = [&](std::uint64_t spot::*code) {
      return where ? finite_value(format_, (*where).*code) : std::nullopt;
    };
    json_value log2 = std::nullopt, spacing = std::nullopt;
    if (where && where->spacing_log2) {
      log2 = *where->spacing_log2;
      spacing = power_of_two(*where->spacing_log2);
    }
    return json_line({{"x", at.first},
                      {"below", value(&spot::below)},
                      {"above", value(&spot::above)},
                      {"nearest", value(&spot::nearest)},
                      {"spacing_log2", log2},
                      {"spacing", spacing}});
  }

  [[nodiscard]] json_object json() const {
    return {{"format", name(format_)},
            {"from", from_},
            {"to", to_},
            {"values", values_.count},
            {"largest_exact_integer", largest_exact_integer(format_)},
            {"spacings", table_json(spacing_columns, values_.spacings, true)},
            {"points", json_line({{"count", points_.points},
                                  {"distinct", points_.distinct},
                                  {"max_error", points_.max_error},
                                  {"mean_error", points_.mean_error}})},
            {"at", json_rows(spots_, [&](const located& at) { return spot_json(at); })}};
  }

  [[nodiscard]] std::string text(const terminal& term) const {
    const std::string heading = cat(format_, " in [", shortest(from_), ", ", shortest(to_),
                                    "): ", number_of(values_.count, "value"));
    const std::string integer = fixed(largest_exact_integer(format_), 0);
    return cat(term.painted(paint::heading, heading), "\n", number_line(term.characters()),
               spacings_text(), values_text(), number_of(points_.points, "point"),
               " spread evenly over it ", points_.points == 1 ? "becomes " : "become ",
               number_of(points_.distinct, "value"), "; error ", general(points_.mean_error, 3),
               " on average, ", general(points_.max_error, 3), " at most\nall integers from 1 to ",
               integer, " are values, ", integer, " + 1 is not\n",
               joined(
                   spots_, [&](const located& at) { return spot_text(at); }, ""));
  }

  [[nodiscard]] std::string spacings_text() const {
    constexpr std::size_t shown_at_each_end = 8;
    const std::span<const even_values> all = values_.spacings;
    if (all.empty()) return {};
    if (all.size() <= 2 * shown_at_each_end + 1) {
      return table_heading(spacing_columns) + table_lines(spacing_columns, all);
    }
    return cat(table_heading(spacing_columns),
               table_lines(spacing_columns, all.first(shown_at_each_end)), "  ... ",
               all.size() - 2 * shown_at_each_end, " more spacings, all with --json\n",
               table_lines(spacing_columns, all.last(shown_at_each_end)));
  }

  /// The values themselves, if there are few.
  [[nodiscard]] std::string values_text() const {
    constexpr std::uint64_t most = 16;
    if (values_.count == 0 || values_.count > most) return {};
    std::string line = "  values:";
    std::uint64_t code = values_.first_code;
    for (std::uint64_t i = 0; i < values_.count; ++i) {
      line += " " + shortest(decode_double(format_, code));
      code = next_up(format_, code);
    }
    return line + "\n";
  }

  /// The interval as a line of columns of equal width, each marked if a value lies in it.
  [[nodiscard]] std::string number_line(charset characters) const {
    constexpr int columns = 72;
    const std::string_view has_value = characters == charset::unicode ? "┼" : "+";
    const std::string_view has_none = characters == charset::unicode ? "─" : "-";
    std::string line = "  ";
    for (int i = 0; i < columns; ++i) {
      const auto bound = [&](int column) {
        return column == columns ? to_ : from_ + (to_ - from_) * (double{1} * column / columns);
      };
      line += values_between(format_, bound(i), bound(i + 1)).count > 0 ? has_value : has_none;
    }
    return line + "\n";
  }

  [[nodiscard]] std::string spot_text(const located& at) const {
    const auto& [x, where] = at;
    if (!where) {
      return cat("at ", shortest(x), ": beyond the values of ", format_, "\n");
    }
    const auto value = [&](std::uint64_t code) { return shortest(decode_double(format_, code)); };
    const std::string between = where->below == where->above
                                    ? "a value"
                                    : cat("between ", value(where->below), " and ",
                                          value(where->above), ", nearest ", value(where->nearest));
    return cat("at ", shortest(x), ": ", between,
               where->spacing_log2 ? cat("; spacing ", spacing_text(*where->spacing_log2)) : "",
               "\n");
  }

  double from_ = 1;
  double to_ = 2;
  interval_values values_;
  rounded_points points_;
  std::vector<located> spots_;  ///< of the numbers of --at
};

const registered resolution_here("resolution", "Show the values of a format in an interval [A, B)",
                                 190, run_of<resolution_command>);

}  // namespace
}  // namespace fpinspect
