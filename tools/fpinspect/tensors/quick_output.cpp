// `fpinspect tensor --quick`: text, JSON and conditions.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/tensors/element_statistics.hpp"
#include "fpinspect/tensors/tensor_views.hpp"

namespace fpinspect {
namespace {

std::string line_of(const std::vector<std::string>& numbers, const std::string& zeros,
                    const std::string& nonfinite, const std::string& name) {
  const auto cell = [](const std::string& number) { return right(number, 10); };
  return cat(joined(numbers, cell, ""), right(zeros, 9), right(nonfinite, 10), "  ", name, "\n");
}

std::string line_of(const samebits::cast_statistics& s, const std::string& name) {
  std::vector<std::string> numbers;
  for (const auto& value : {s.min, s.max, s.mean, s.rms, s.min_nonzero}) {
    numbers.push_back(value ? general(*value, 3) : "-");
  }
  return line_of(numbers, percent(s.zeros, s.count), cat(s.nan + s.inf), name);
}

json_value json_of(const samebits::cast_statistics& s) {
  return json_line({{"zeros", s.zeros},
                    {"nan", s.nan},
                    {"inf", s.inf},
                    {"min", s.min},
                    {"max", s.max},
                    {"amax", s.amax},
                    {"min_nonzero", s.min_nonzero},
                    {"mean", s.mean},
                    {"rms", s.rms},
                    {"l2_norm", s.l2_norm}});
}

/// Calls f(tensor, name, statistics) for each tensor in turn; without statistics for those whose
/// elements are not numbers.
template <class Function>
void for_each_statistics(std::span<const shown_tensor> tensors, std::span<const std::string> names,
                         gate& conditions, const samebits::executor& where, const Function& f) {
  std::uint64_t bytes = 0;
  for (const shown_tensor& tensor : tensors) bytes += tensor.has_numbers() ? tensor.info.bytes : 0;
  progress line(bytes, bytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::optional<samebits::cast_statistics> s;
    if (tensors[i].has_numbers()) {
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

void write_quick_statistics(std::span<const shown_tensor> tensors,
                            std::span<const std::string> names, const std::string& heading,
                            gate& conditions, const samebits::executor& where, const session& s) {
  json_array all;
  if (!s.json) {
    std::uint64_t values = 0;
    for (const shown_tensor& tensor : tensors) values += tensor.info.count;
    const std::string headings =
        line_of({"min", "max", "mean", "rms", "smallest"}, "zeros", "NaN, Inf", "tensor");
    s.out.write(cat(heading, ": ", number_of(tensors.size(), "tensor"), ", ",
                    number_of(values, "value"), "\n\n", s.term.painted(paint::heading, headings)));
  }
  for_each_statistics(tensors, names, conditions, where,
                      [&](const shown_tensor& tensor, const std::string& name,
                          const std::optional<samebits::cast_statistics>& found) {
                        if (s.json) {
                          return all.add(tensor_json(tensor).add(
                              "statistics", found ? json_of(*found) : json_value(std::nullopt)));
                        }
                        const std::vector<std::string> none(5, "-");
                        s.out.write(found ? line_of(*found, name)
                                          : line_of(none, "-", "-", cat(name, ": ", tensor.note)));
                      });
  if (s.json) return s.write_json({{"tensors", all}, {"fail_if", conditions.json()}});
  s.out.write(
      "\nrms: root of the mean square   smallest: non-zero magnitude\n"
      "All figures are those of the finite elements.\n");
}

}  // namespace fpinspect
