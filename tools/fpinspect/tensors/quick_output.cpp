// `fpinspect tensor --quick`: text, JSON and conditions.
#include <array>
#include <cstddef>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/tensors/element_statistics.hpp"
#include "fpinspect/tensors/quick_output.hpp"

namespace fpinspect {
namespace {

std::string line_of(std::span<const std::string> numbers, const std::string& zeros,
                    const std::string& nonfinite, const std::string& name) {
  std::string line;
  for (const std::string& number : numbers) line += right(number, 10);
  return cat(line, right(zeros, 9), right(nonfinite, 10), "  ", name, "\n");
}

std::string headings() {
  const std::array<std::string, 5> numbers = {"min", "max", "mean", "rms", "smallest"};
  return line_of(numbers, "zeros", "NaN, Inf", "tensor");
}

std::string line_of(const samebits::cast_statistics& s, const std::string& name) {
  std::vector<std::string> numbers;
  for (const auto& value : {s.min, s.max, s.mean, s.rms, s.min_nonzero}) {
    numbers.push_back(value ? general(*value, 3) : "-");
  }
  return line_of(numbers, percent(s.zeros, s.count), cat(s.nan + s.inf), name);
}

void write_statistics_json(json_writer& json, const samebits::cast_statistics& s) {
  json.begin_object(json_writer::layout::one_line);
  json.member("zeros", s.zeros);
  json.member("nan", s.nan);
  json.member("inf", s.inf);
  json.member("min", s.min);
  json.member("max", s.max);
  json.member("amax", s.amax);
  json.member("min_nonzero", s.min_nonzero);
  json.member("mean", s.mean);
  json.member("rms", s.rms);
  json.member("l2_norm", s.l2_norm);
  json.end_object();
}

/// Calls f(tensor, name, statistics) for each tensor in turn; without statistics for those whose
/// elements are not numbers.
template <class Function>
void for_each_statistics(std::span<const shown_tensor> tensors, std::span<const std::string> names,
                         gate& conditions, const samebits::executor& where, const Function& f) {
  std::uint64_t bytes = 0;
  for (const shown_tensor& tensor : tensors) bytes += tensor.how ? tensor.info.bytes : 0;
  progress line(bytes, bytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::optional<samebits::cast_statistics> s;
    if (tensors[i].how) {
      s = statistics_of(tensors[i], {.sums = true}, where);
      conditions.add_nonfinite(names[i], s->nan, s->inf, s->count);
      line.add(tensors[i].info.bytes);
    } else {
      conditions.add_failure(names[i], tensors[i].note);
    }
    f(tensors[i], names[i], s);
  }
}

}  // namespace

std::vector<condition> quick_conditions(const std::vector<std::string>& texts) {
  constexpr std::array figures = {figure_spec{"nan", "%"}, figure_spec{"inf", "%"}};
  return conditions_argument("--fail-if", texts, figures);
}

void write_quick_statistics(std::span<const shown_tensor> tensors,
                            std::span<const std::string> names, const std::string& heading,
                            gate& conditions, const samebits::executor& where, const terminal& term,
                            output& out) {
  std::uint64_t values = 0;
  for (const shown_tensor& tensor : tensors) values += tensor.info.count;
  out.write(cat(heading, ": ", number_of(tensors.size(), "tensor"), ", ",
                number_of(values, "value"), "\n\n", term.painted(paint::heading, headings())));
  for_each_statistics(
      tensors, names, conditions, where,
      [&](const shown_tensor& tensor, const std::string& name,
          const std::optional<samebits::cast_statistics>& s) {
        const std::vector<std::string> none(5, "-");
        out.write(s ? line_of(*s, name) : line_of(none, "-", "-", cat(name, ": ", tensor.note)));
      });
  out.write(
      "\nrms: root of the mean square   smallest: non-zero magnitude\n"
      "All figures are those of the finite elements.\n");
}

void write_quick_statistics_json(std::span<const shown_tensor> tensors,
                                 std::span<const std::string> names, gate& conditions,
                                 const samebits::executor& where, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("tensors");
  json.begin_array();
  for_each_statistics(tensors, names, conditions, where,
                      [&](const shown_tensor& tensor, const std::string&,
                          const std::optional<samebits::cast_statistics>& s) {
                        json.begin_object();
                        json.member("name", tensor.info.name);
                        json.member("from", tensor.how
                                                ? std::optional(type_text(tensor.info, *tensor.how))
                                                : std::nullopt);
                        json.member("shape", std::span<const std::uint64_t>(tensor.info.shape));
                        json.member("count", tensor.info.count);
                        json.key("statistics");
                        if (s) {
                          write_statistics_json(json, *s);
                        } else {
                          json.value(std::nullopt);
                        }
                        json.end_object();
                      });
  json.end_array();
  conditions.write_json(json);
  json.end_object();
  out.write(json.document());
}

}  // namespace fpinspect
