// `fpinspect tensor --quick`: text, JSON and conditions.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/tensors/source/selection.hpp"
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

}  // namespace

void write_quick_statistics(const std::vector<shown_tensor>& tensors,
                            std::span<const std::string> names, gate& conditions,
                            const samebits::executor& where, const session& s) {
  if (!s.json) {
    const std::string headings =
        line_of({"min", "max", "mean", "rms", "smallest"}, "zeros", "NaN, Inf", "tensor");
    s.out.write(cat(heading_of(tensors), ": ", size_text(tensors), "\n\n",
                    s.term.painted(paint::heading, headings)));
  }
  json_array all;
  const std::uint64_t bytes = bytes_to_read(tensors);
  progress line(bytes, bytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const shown_tensor& tensor = tensors[i];
    json_value found = std::nullopt;
    std::string text =
        line_of(std::vector<std::string>(5, "-"), "-", "-", cat(names[i], ": ", tensor.note));
    if (tensor.has_numbers()) {
      const samebits::cast_statistics stats = statistics_of(tensor, {.sums = true}, where);
      conditions.add_nonfinite(names[i], stats.nan, stats.inf, stats.count);
      line.add(tensor.info.bytes);
      found = json_of(stats);
      text = line_of(stats, names[i]);
    } else {
      conditions.add_failure(names[i], tensor.note);
    }
    if (s.json) {
      all.add(tensor_json(tensor).add("statistics", found));
    } else {
      s.out.write(text);
    }
  }
  if (s.json) return s.write_json({{"tensors", all}, {"fail_if", conditions.json()}});
  s.out.write(
      "\nrms: root of the mean square   smallest: non-zero magnitude\n"
      "All figures are those of the finite elements.\n");
}

}  // namespace fpinspect
