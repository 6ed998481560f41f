// CSV text of traces: lines and cells, without quotes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fpinspect {

/// The cells of a line, without blanks around them.
std::vector<std::string_view> csv_cells(std::string_view line);

/// Reads CSV text line by line.
class csv_reader {
 public:
  /// @param path  the file's name in errors; "-" is standard input
  csv_reader(std::string path, std::string_view text) : path_(std::move(path)), rest_(text) {}

  /// The next line that is not blank.
  std::optional<std::string_view> next();

  /// @throws file_error  that names the file and the line
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::string path_;
  std::string_view rest_;
  int number_ = 0;
};

// Each reads the text of a cell. They refuse any other text, and name the column.
bool flag_cell(const csv_reader& file, std::string_view column, std::string_view text);
std::int64_t integer_cell(const csv_reader& file, std::string_view column, std::string_view text);
/// A number >= 0, Inf or NaN.
double magnitude_cell(const csv_reader& file, std::string_view column, std::string_view text);

}  // namespace fpinspect
