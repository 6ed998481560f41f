// `fpinspect demo`: runs a demonstration and prints its table.
#include <algorithm>
#include <cstddef>

#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/demos/demos.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

const demo& demo_argument(const std::string& text) {
  std::string names;
  for (const demo& candidate : demos()) {
    if (candidate.name == text) return candidate;
    names += cat(names.empty() ? "" : ", ", candidate.name);
  }
  throw usage_error(cat("NAME: ", samebits::tensor_file::quote(text), " is not one of ", names));
}

std::string cell_text(const demo_table::cell& cell) {
  const double* const value = std::get_if<double>(&cell);
  return value != nullptr ? general(*value, 6) : std::get<std::string>(cell);
}

void write_demo_json(const demo& shown, output& out) {
  const demo_table table = shown.run();
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("demo", shown.name);
  json.member("question", shown.question);
  json.key("rows");
  json.begin_array();
  for (const auto& row : table.rows) {
    json.begin_object(json_writer::layout::one_line);
    for (std::size_t i = 0; i < row.size(); ++i) {
      json.key(table.columns[i]);
      std::visit([&](const auto& value) { json.value(value); }, row[i]);
    }
    json.end_object();
  }
  json.end_array();
  json.member("answer", shown.answer);
  json.end_object();
  out.write(json.document());
}

void write_demo_text(const demo& shown, const terminal& term, output& out) {
  const demo_table table = shown.run();
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = table.columns[i].size();
    for (const auto& row : table.rows) width = std::max(width, cell_text(row[i]).size());
    widths.push_back(width + 2);
  }
  out.write(term.painted(paint::heading, shown.question) + "\n\n");
  std::string heading;
  for (std::size_t i = 0; i < widths.size(); ++i) heading += left(table.columns[i], widths[i]);
  out.write(heading.substr(0, heading.find_last_not_of(' ') + 1) + "\n");
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) line += left(cell_text(row[i]), widths[i]);
    out.write(line.substr(0, line.find_last_not_of(' ') + 1) + "\n");
  }
  out.write(cat("\n", shown.answer, "\n"));
}

}  // namespace

void run_demo(const demo_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const demo& shown = demo_argument(arguments.name);
  if (arguments.view.json) {
    write_demo_json(shown, out);
  } else {
    write_demo_text(shown, term, out);
  }
}

}  // namespace fpinspect
