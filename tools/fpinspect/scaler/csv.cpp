// CSV text of traces: implementation.
#include "fpinspect/scaler/csv.hpp"

#include <bit>
#include <charconv>

#include "fpinspect/cli/text/text.hpp"
#include "samebits/core/format.hpp"
#include "samebits/text.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

}  // namespace

std::vector<std::string_view> csv_cells(std::string_view line) {
  std::vector<std::string_view> all;
  while (true) {
    const std::size_t comma = line.find(',');
    all.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return all;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::string_view> csv_reader::next() {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    const std::string_view line = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

void csv_reader::refuse(const std::string& why) const {
  throw samebits::tensor_file::file_error(
      samebits::tensor_file::error_kind::malformed,
      cat(samebits::tensor_file::escape_path(path_), ", line ", number_, ": ", why));
}

bool flag_cell(const csv_reader& file, std::string_view column, std::string_view text) {
  if (text == "1" || text == "true" || text == "True") return true;
  if (text != "0" && text != "false" && text != "False") {
    file.refuse(cat(column, ": ", samebits::tensor_file::quote(text), " is not 0 or 1"));
  }
  return false;
}

std::int64_t integer_cell(const csv_reader& file, std::string_view column, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    file.refuse(cat(column, ": ", samebits::tensor_file::quote(text), " is not an integer"));
  }
  return number;
}

double magnitude_cell(const csv_reader& file, std::string_view column, std::string_view text) {
  const samebits::parse_result read = samebits::parse(samebits::format_id::fp64, text);
  const auto number = std::bit_cast<double>(read.code);
  if (!read.ok || number < 0) {
    file.refuse(cat(column, ": ", samebits::tensor_file::quote(text), " is not a number >= 0"));
  }
  return number;
}

}  // namespace fpinspect
