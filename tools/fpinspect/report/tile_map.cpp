// Amax and error of the parts of a matrix, on a grid of bounded size, and their pictures.
#include "fpinspect/report/pictures.hpp"

#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/convert.hpp"

namespace fpinspect {

// --- Amax and error of the parts of a matrix -----------------------------------------------------

namespace {

/// The matrix after a choice. Nothing if the choice is not measured.
std::optional<owned_matrix> stored_by(const const_matrix_view& in, std::optional<choice> c,
                                      const executor& where) {
  if (!c || *c == choice::fp16_scaled || (is_recipe(*c) && !is_quantizable(in.format))) return {};
  const choice_spec& spec = spec_of(*c);
  if (is_recipe(*c)) {
    return requantized(in, find_recipe(spec.recipe)->rules, spec.format, where);
  }
  owned_matrix codes(spec.format, {in.rows, in.cols});
  samebits::convert(in, codes.view(), {.overflow = overflow::saturate}, where);
  return codes;
}

/// Adds elements of one row. `stored` is empty, or has the elements after the choice.
void add_row(tile_map& map, std::uint64_t row, std::span<const double> exact,
             std::span<const double> stored) {
  map_cell* const cells = map.cells.data() + row / map.cell_rows * map.grid_cols;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    map_cell& cell = cells[i / map.cell_cols];
    const double x = exact[i];
    if (!std::isfinite(x)) {
      cell.finite = false;
      continue;
    }
    cell.amax = std::max(cell.amax, std::fabs(x));
    if (stored.empty()) continue;
    const double d = x - stored[i];
    cell.signal += x * x;
    cell.noise += d * d;
  }
}

/// The cells of a matrix of this size: powers of two of at least 1 element, as few as fit the grid.
tile_map empty_map(std::uint64_t rows, std::uint64_t cols) {
  tile_map map = {.rows = rows, .cols = cols};
  const auto cell = [](std::uint64_t size, std::uint64_t most) {
    return std::bit_ceil((size + most - 1) / most);
  };
  map.cell_rows = cell(rows, most_map_rows);
  map.cell_cols = cell(cols, most_map_cols);
  map.grid_rows = static_cast<std::size_t>((rows + map.cell_rows - 1) / map.cell_rows);
  map.grid_cols = static_cast<std::size_t>((cols + map.cell_cols - 1) / map.cell_cols);
  map.cells.resize(map.grid_rows * map.grid_cols);
  return map;
}

}  // namespace

std::optional<tile_map> tile_map_of(const shown_tensor& tensor, bool of_weight,
                                    std::optional<choice> stored_as, const executor& where) {
  if (!tensor.has_numbers() || tensor.info.count == 0 || tensor.info.shape.size() < 2)
    return std::nullopt;
  const format_id format = tensor.how.format;
  const source_matrix in = matrix_of(tensor, judged_matrix_of(tensor.info, of_weight));
  const auto rows = static_cast<std::uint64_t>(in.view.rows);
  const auto cols = static_cast<std::size_t>(in.view.cols);
  tile_map map = empty_map(rows, cols);
  const std::optional<owned_matrix> stored = stored_by(in.view, stored_as, where);
  map.has_errors = stored && !stored->bytes.empty();
  std::vector<double> exact(cols);
  std::vector<double> after(map.has_errors ? cols : 0);
  const auto* const codes = static_cast<const std::byte*>(in.view.data);
  const std::size_t bytes = bytes_each(format);
  for (std::uint64_t row = 0; row < rows; ++row) {
    decode(format, codes + row * cols * bytes, exact);
    if (map.has_errors) {
      decode(stored->format, stored->bytes.data() + row * (stored->bytes.size() / rows), after);
    }
    add_row(map, row, exact, after);
  }
  return map;
}

// --- Amax and error of the parts of a matrix as heat maps ----------------------------------------

namespace {

constexpr int levels = 8;
constexpr int no_level = -1;
constexpr int bad_level = levels;
constexpr double map_top = 18;

/// The level of a cell: 0 to 7 as colours, no_level without a colour, bad_level for NaN and Inf.
using level_of_cell = std::function<int(const map_cell&)>;

std::string class_of(int level) { return level == bad_level ? "hx" : cat("h", level); }

/// The cells of one level, neighbours in a row as one line of width 1.
std::string cells_of(const tile_map& map, const level_of_cell& level_of, int level) {
  std::string data;
  for (std::size_t row = 0; row < map.grid_rows; ++row) {
    for (std::size_t col = 0; col < map.grid_cols;) {
      std::size_t end = col;
      while (end < map.grid_cols && level_of(map.at(row, end)) == level) ++end;
      if (end > col) data += cat("M", col, " ", row, ".5h", end - col);
      col = std::max(end, col + 1);
    }
  }
  return data;
}

/// @param least,most  the words at both ends of the legend
svg_picture heat_map(const tile_map& map, const std::string& title, const std::string& description,
                     const level_of_cell& level_of, std::string_view least, std::string_view most) {
  constexpr double widest_cell = 14;
  const double scale = std::min({(picture_width - 2) / static_cast<double>(map.grid_cols),
                                 200.0 / static_cast<double>(map.grid_rows), widest_cell});
  const double height = scale * static_cast<double>(map.grid_rows);
  svg_picture picture(picture_width, map_top + height + 28, title, description);
  picture.text("start", 0, 12, map.rows, " rows, ", map.cols, " columns; a cell is ", map.cell_rows,
               " x ", map.cell_cols);
  picture.begin_group(1, map_top, scale);
  for (int level = 0; level <= bad_level; ++level) {
    const std::string cells = cells_of(map, level_of, level);
    if (!cells.empty()) picture.path(class_of(level), cells);
  }
  picture.end_group();
  const double width = scale * static_cast<double>(map.grid_cols);
  picture.path("frame", "M1 ", coordinate(map_top), "h", coordinate(width), "v", coordinate(height),
               "h-", coordinate(width), "z");
  const double y = map_top + height + 16;
  picture.text("end", 150, y + 4, least);
  picture.begin_group(156, y - 5, 10);
  for (int level = 0; level < levels; ++level) picture.path(class_of(level), "M", level, " .5h1");
  picture.end_group();
  picture.text("start", 242, y + 4, most);
  return picture;
}

}  // namespace

svg_picture amax_picture(const std::string& tensor, const tile_map& map) {
  double largest = 0;
  double smallest = 0;
  for (const map_cell& cell : map.cells) {
    largest = std::max(largest, cell.amax);
    if (cell.amax > 0 && (smallest == 0 || cell.amax < smallest)) smallest = cell.amax;
  }
  const auto level_of = [&](const map_cell& cell) {
    if (!cell.finite) return bad_level;
    if (cell.amax == 0) return no_level;
    const double below = std::floor(std::log2(largest / cell.amax));
    return levels - 1 - static_cast<int>(std::min(below, static_cast<double>(levels - 1)));
  };
  const std::string span = smallest > 0 ? cat("The largest cell's amax is ", general(largest, 3),
                                              ", the smallest ", general(smallest, 3), ".")
                                        : "All cells are zero.";
  return heat_map(map, cat("amax of the parts of ", tensor), span, level_of, "1/128 and less",
                  "the tensor's amax");
}

std::optional<svg_picture> error_picture(const std::string& tensor, const tile_map& map,
                                         std::string_view choice) {
  if (!map.has_errors) return std::nullopt;
  constexpr double best = 45;  // dB, and 5 dB a level below it
  double worst = std::numeric_limits<double>::infinity();
  const auto db_of = [](const map_cell& cell) {
    if (cell.noise == 0) return std::numeric_limits<double>::infinity();
    return cell.signal == 0 ? 0.0 : 10.0 * std::log10(cell.signal / cell.noise);
  };
  for (const map_cell& cell : map.cells) {
    if (cell.finite) worst = std::min(worst, db_of(cell));
  }
  const auto level_of = [&](const map_cell& cell) {
    if (!cell.finite) return bad_level;
    if (cell.noise == 0) return no_level;
    const double below = std::ceil((best - db_of(cell)) / 5.0);
    return static_cast<int>(std::clamp(below, 0.0, static_cast<double>(levels - 1)));
  };
  const std::string figure = std::isinf(worst)
                                 ? "No cell has an error."
                                 : cat("The worst cell keeps ", fixed(worst, 1), " dB.");
  return heat_map(map, cat("SQNR of the parts of ", tensor, " as ", choice), figure, level_of,
                  "45 dB and more", "below 15 dB");
}

}  // namespace fpinspect
