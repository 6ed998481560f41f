// The loss scale of each step: implementation.
#include "fpinspect/scaler/scale_trace.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/scaler/csv.hpp"

namespace fpinspect {
namespace {

constexpr std::array<std::string_view, 3> wanted_columns = {"step", "scale", "applied"};

/// The positions of the wanted columns among the names of the header.
std::array<std::size_t, 3> positions_of(const csv_reader& file,
                                        const std::vector<std::string_view>& names) {
  std::array<std::size_t, 3> positions{};
  for (std::size_t i = 0; i < wanted_columns.size(); ++i) {
    std::size_t found = 0;
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (names[k] != wanted_columns[i]) continue;
      positions[i] = k;
      ++found;
    }
    if (found == 0) file.refuse(cat("there is no column ", wanted_columns[i]));
    if (found > 1) file.refuse(cat("column ", wanted_columns[i], " stands there twice"));
  }
  return positions;
}

}  // namespace

std::vector<scaler_row> read_scale_trace(const std::string& path) {
  const std::string text = read_text_file(path);
  csv_reader file(path, text);
  const auto header = file.next();
  if (!header) file.refuse("there is no header");
  const std::vector<std::string_view> names = csv_cells(*header);
  const auto [step, scale, applied] = positions_of(file, names);
  std::vector<scaler_row> rows;
  while (const auto line = file.next()) {
    const std::vector<std::string_view> cells = csv_cells(*line);
    if (cells.size() != names.size()) {
      file.refuse(cat(number_of(cells.size(), "cell"), " under ", number_of(names.size(), "name")));
    }
    scaler_row row;
    row.step = integer_cell(file, "step", cells[step]);
    row.scale = magnitude_cell(file, "scale", cells[scale]);
    if (!std::isfinite(row.scale)) file.refuse("scale: must be finite");
    row.applied = flag_cell(file, "applied", cells[applied]);
    rows.push_back(row);
  }
  if (rows.empty()) file.refuse("there are no steps");
  return rows;
}

}  // namespace fpinspect
