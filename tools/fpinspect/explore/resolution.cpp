// `fpinspect resolution`: the values of a format in an interval, and the spacing at numbers.
#include "fpinspect/explore/resolution.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/number_argument.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/scalar.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// Everything that `resolution` prints of one format.
struct resolution_task {
  format_id format;
  double from;
  double to;
  interval_values values;
  double largest_integer;
  rounded_points points;
  std::vector<std::pair<double, std::optional<spot>>> spots;  ///< of the numbers of --at
};

resolution_task task_of(const resolution_arguments& arguments) {
  const format_id format = format_argument("FORMAT", arguments.format);
  if (arguments.from.empty() != arguments.to.empty()) {
    throw usage_error("B: needed after A; the interval is [A, B)");
  }
  const double from = arguments.from.empty() ? 1.0 : number_argument("A", arguments.from);
  const double to = arguments.to.empty() ? 2.0 : number_argument("B", arguments.to);
  if (!(0 <= from && from < to)) {
    throw usage_error("A and B: 0 <= A < B is expected; negative values mirror the positive ones");
  }
  const std::uint64_t points = unsigned_argument("--points", arguments.points, 1, 100'000'000);
  resolution_task task{format,
                       from,
                       to,
                       values_between(format, from, to),
                       largest_exact_integer(format),
                       round_points(format, from, to, points),
                       {}};
  for (const std::string& text : arguments.at) {
    const double x = number_argument("--at", text);
    task.spots.emplace_back(x, spot_of(format, x));
  }
  return task;
}

double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

void write_spot_json(json_writer& json, format_id format, double x,
                     const std::optional<spot>& where) {
  const auto value = [&](std::uint64_t spot::*code) {
    return where ? finite_value(format, (*where).*code) : std::nullopt;
  };
  json.begin_object(json_writer::layout::one_line);
  json.member("x", x);
  json.member("below", value(&spot::below));
  json.member("above", value(&spot::above));
  json.member("nearest", value(&spot::nearest));
  if (where && where->spacing_log2) {
    json.member("spacing_log2", *where->spacing_log2);
    json.member("spacing", power_of_two(*where->spacing_log2));
  } else {
    json.member("spacing_log2", std::nullopt);
    json.member("spacing", std::nullopt);
  }
  json.end_object();
}

void write_resolution_json(const resolution_task& task, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("format", samebits::name(task.format));
  json.member("from", task.from);
  json.member("to", task.to);
  json.member("values", task.values.count);
  json.member("largest_exact_integer", task.largest_integer);
  json.key("spacings");
  json.begin_array();
  for (const even_values& values : task.values.spacings) {
    json.begin_object(json_writer::layout::one_line);
    json.member("first", values.first);
    json.member("last", values.last);
    json.member("values", values.count);
    json.member("spacing_log2", values.spacing_log2);
    json.member("spacing", power_of_two(values.spacing_log2));
    json.end_object();
  }
  json.end_array();
  json.key("points");
  json.begin_object(json_writer::layout::one_line);
  json.member("count", task.points.points);
  json.member("distinct", task.points.distinct);
  json.member("max_error", task.points.max_error);
  json.member("mean_error", task.points.mean_error);
  json.end_object();
  json.key("at");
  json.begin_array();
  for (const auto& [x, where] : task.spots) write_spot_json(json, task.format, x, where);
  json.end_array();
  json.end_object();
  out.write(json.document());
}

std::string spacing_row(std::string_view first, std::string_view last, std::string_view count,
                        const std::string& spacing) {
  return cat("  ", left(first, 13), left(last, 13), right(count, 10), "  ", spacing, "\n");
}

std::string spacing_text(int exponent) {
  return cat(power_text(exponent), " = ", general(power_of_two(exponent), 6));
}

void write_spacings(const resolution_task& task, output& out) {
  constexpr std::size_t shown_at_each_end = 8;
  const auto& spacings = task.values.spacings;
  if (spacings.empty()) return;
  out.write(spacing_row("from", "to", "values", "spacing"));
  for (std::size_t i = 0; i < spacings.size(); ++i) {
    if (spacings.size() > 2 * shown_at_each_end + 1 && i == shown_at_each_end) {
      i = spacings.size() - shown_at_each_end;
      out.write(cat("  ... ", i - shown_at_each_end, " more spacings, all with --json\n"));
    }
    const even_values& values = spacings[i];
    out.write(spacing_row(general(values.first, 6), general(values.last, 6),
                          std::to_string(values.count), spacing_text(values.spacing_log2)));
  }
}

/// The values themselves, if there are few.
void write_values(const resolution_task& task, output& out) {
  constexpr std::uint64_t most = 16;
  if (task.values.count == 0 || task.values.count > most) return;
  std::string line = "  values:";
  std::uint64_t code = task.values.first_code;
  for (std::uint64_t i = 0; i < task.values.count; ++i) {
    line += " " + shortest(samebits::decode_double(task.format, code));
    code = samebits::next_up(task.format, code);
  }
  out.write(line + "\n");
}

/// The interval as a line of columns of equal width, each marked if a value lies in it.
std::string number_line(const resolution_task& task, charset characters) {
  constexpr int columns = 72;
  const std::string_view has_value = characters == charset::unicode ? "┼" : "+";
  const std::string_view has_none = characters == charset::unicode ? "─" : "-";
  std::string line = "  ";
  for (int i = 0; i < columns; ++i) {
    const auto bound = [&](int column) {
      return column == columns ? task.to
                               : task.from + (task.to - task.from) * (double{1} * column / columns);
    };
    line += values_between(task.format, bound(i), bound(i + 1)).count > 0 ? has_value : has_none;
  }
  return line + "\n";
}

void write_spots(const resolution_task& task, output& out) {
  for (const auto& [x, where] : task.spots) {
    if (!where) {
      out.write(
          cat("at ", shortest(x), ": beyond the values of ", samebits::name(task.format), "\n"));
      continue;
    }
    const auto value = [&](std::uint64_t code) {
      return shortest(samebits::decode_double(task.format, code));
    };
    const std::string between = where->below == where->above
                                    ? "a value"
                                    : cat("between ", value(where->below), " and ",
                                          value(where->above), ", nearest ", value(where->nearest));
    out.write(cat("at ", shortest(x), ": ", between,
                  where->spacing_log2 ? cat("; spacing ", spacing_text(*where->spacing_log2)) : "",
                  "\n"));
  }
}

void write_resolution_text(const resolution_task& task, const terminal& term, output& out) {
  out.write(term.painted(paint::heading,
                         cat(samebits::name(task.format), " in [", shortest(task.from), ", ",
                             shortest(task.to), "): ", number_of(task.values.count, "value"))) +
            "\n");
  out.write(number_line(task, term.characters()));
  write_spacings(task, out);
  write_values(task, out);
  const rounded_points& points = task.points;
  out.write(cat(number_of(points.points, "point"), " spread evenly over it ",
                points.points == 1 ? "becomes " : "become ", number_of(points.distinct, "value"),
                "; error ", general(points.mean_error, 3), " on average, ",
                general(points.max_error, 3), " at most\n"));
  out.write(cat("all integers from 1 to ", fixed(task.largest_integer, 0), " are values, ",
                fixed(task.largest_integer, 0), " + 1 is not\n"));
  write_spots(task, out);
}

}  // namespace

void run_resolution(const resolution_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const resolution_task task = task_of(arguments);
  if (arguments.view.json) {
    write_resolution_json(task, out);
  } else {
    write_resolution_text(task, term, out);
  }
}

}  // namespace fpinspect
