// Amax and error of the parts of a matrix: implementation.
#include "fpinspect/report/tile_map.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/convert.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"
#include "samebits/view.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// The matrix after a choice: codes of `format`. Empty if the choice is not measured.
struct stored_matrix {
  format_id format = format_id::fp32;
  std::vector<std::byte> codes;
};

stored_matrix quantized(const samebits::const_matrix_view& in, choice c,
                        const samebits::executor& where) {
  const samebits::recipe& rules = samebits::find_recipe(spec_of(c).recipe)->rules;
  owned_matrix codes(spec_of(c).format, {in.rows, in.cols});
  owned_matrix scales(rules.scale_format, samebits::scales_shape(in.rows, in.cols, rules.tile));
  samebits::quantize(in, {.codes = codes.view(), .scales = scales.view()}, rules, where);
  owned_matrix values(format_id::fp32, {in.rows, in.cols});
  samebits::dequantize(codes.view(), scales.view(), values.view(), rules.tile, where);
  return {format_id::fp32, std::move(values.bytes)};
}

stored_matrix converted(const samebits::const_matrix_view& in, choice c,
                        const samebits::executor& where) {
  owned_matrix codes(spec_of(c).format, {in.rows, in.cols});
  samebits::convert(in, codes.view(), {.overflow = samebits::overflow::saturate}, where);
  return {spec_of(c).format, std::move(codes.bytes)};
}

stored_matrix stored_by(const source_matrix& in, format_id format, std::optional<choice> c,
                        const samebits::executor& where) {
  if (!c || *c == choice::fp16_scaled) return {};
  if (!is_recipe(*c)) return converted(in.view, *c, where);
  return is_quantizable(format) ? quantized(in.view, *c, where) : stored_matrix{};
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

}  // namespace

tile_map empty_map(std::uint64_t rows, std::uint64_t cols) {
  tile_map map = {.rows = rows, .cols = cols};
  const auto cell = [](std::uint64_t size, std::uint64_t most) {
    std::uint64_t each = 1;
    while ((size + each - 1) / each > most) each *= 2;
    return each;
  };
  map.cell_rows = cell(rows, most_map_rows);
  map.cell_cols = cell(cols, most_map_cols);
  map.grid_rows = static_cast<std::size_t>((rows + map.cell_rows - 1) / map.cell_rows);
  map.grid_cols = static_cast<std::size_t>((cols + map.cell_cols - 1) / map.cell_cols);
  map.cells.resize(map.grid_rows * map.grid_cols);
  return map;
}

std::optional<tile_map> tile_map_of(const shown_tensor& tensor, bool of_weight,
                                    std::optional<choice> stored_as,
                                    const samebits::executor& where) {
  if (!tensor.how || tensor.info.count == 0 || tensor.info.shape.size() < 2) return std::nullopt;
  const format_id format = tensor.how->format;
  const source_matrix in =
      matrix_of(*tensor.file, tensor.info, *tensor.how, judged_matrix_of(tensor.info, of_weight));
  const auto rows = static_cast<std::uint64_t>(in.view.rows);
  const auto cols = static_cast<std::size_t>(in.view.cols);
  tile_map map = empty_map(rows, cols);
  const stored_matrix stored = stored_by(in, format, stored_as, where);
  map.has_errors = !stored.codes.empty();
  std::vector<double> exact(cols);
  std::vector<double> after(map.has_errors ? cols : 0);
  const auto* const codes = static_cast<const std::byte*>(in.view.data);
  const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(format));
  const auto stored_bytes = static_cast<std::size_t>(samebits::storage_bytes(stored.format));
  for (std::uint64_t row = 0; row < rows; ++row) {
    decode(format, codes + row * cols * bytes, exact);
    if (map.has_errors) {
      decode(stored.format, stored.codes.data() + row * cols * stored_bytes, after);
    }
    add_row(map, row, exact, after);
  }
  return map;
}

}  // namespace fpinspect
