// Operands and scales of `matmul`: implementation.
#include "fpinspect/quantize/matmul_source.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "samebits/convert.hpp"
#include "samebits/quantize.hpp"

namespace fpinspect {
namespace {

using samebits::const_matrix_view;
using samebits::format_id;
using samebits::tile_shape;

const_matrix_view transposed_if(file_layout how, const const_matrix_view& v) {
  return how == file_layout::transposed ? samebits::transposed(v) : v;
}

/// Parses a complete text as a positive decimal number; returns false for any other text.
bool parse_scale(const std::string& text, float& scale) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, scale);
  return error == std::errc() && stop == end && std::isfinite(scale);
}

/// Finds the tile shape that belongs to scales of this shape. `operand` is in storage order;
/// `k_last` says that K runs along its columns.
bool find_scale_tile(const samebits::matrix_shape& scales, const const_matrix_view& operand,
                     bool k_last, tile_shape& tile) {
  const std::array<tile_shape, 4> along = {tile_shape{0, 0}, tile_shape{1, 0}, tile_shape{1, 128},
                                           tile_shape{128, 128}};
  for (const tile_shape& t : along) {
    tile = k_last ? t : tile_shape{t.cols, t.rows};
    if (samebits::scales_shape(operand.rows, operand.cols, tile) == scales) return true;
  }
  return false;
}

}  // namespace

product_operand::product_operand(std::string_view which, const std::string& input,
                                 std::string_view option, const std::string& from, format_id format,
                                 file_layout how)
    : source_(open_source(which, input, option, from)) {
  const auto& info = source_.info;
  if (info.shape.size() != 2) {
    throw usage_error(
        cat(which, ": must have two dimensions, got [", comma_separated(info.shape), "]"));
  }
  const format_id own = source_.format();
  if (own == format_id::fp64) {
    throw usage_error(cat(which, ": ", type_text(info, source_.how),
                          " values are not taken; `fpinspect convert` them first"));
  }
  values_ = codes_ = (read_ = matrix_of(source_)).view;
  if (own != format) {
    rounded_.emplace(format, matrix_of(info));
    samebits::convert(values_, rounded_->view());
    codes_ = rounded_->view();
  }
  values_ = transposed_if(how, values_);
  codes_ = transposed_if(how, codes_);
}

product_scales::product_scales(std::string_view option, const std::string& text, operand_side side,
                               file_layout how, const const_matrix_view& operand) {
  if (text.empty()) return;
  float number = 0;
  if (parse_scale(text, number)) {
    values_ = {number};
    scales_ = {samebits::view_of(values_.data(), 1, 1), {0, 0}};
    return;
  }
  const source_tensor source = open_source(option, text, option, "");
  const auto& info = source.info;
  if (source.format() != format_id::fp32 || source.how.integer_values || info.shape.size() > 2) {
    throw usage_error(cat(option, ": scales are fp32 in at most two dimensions, got ",
                          type_text(info, source.how), " [", comma_separated(info.shape), "]"));
  }
  values_.resize(info.count);
  source.read(0, info.count, reinterpret_cast<std::byte*>(values_.data()));
  const const_matrix_view as_stored = transposed_if(how, operand);
  const bool k_last = (side == operand_side::a) == (how == file_layout::as_is);
  const auto extent = [&](std::size_t i) { return static_cast<std::int64_t>(info.shape[i]); };
  const auto count = static_cast<std::int64_t>(info.count);
  const bool flat = info.shape.size() < 2;  // one scale per row or column
  const samebits::matrix_shape shape = !flat    ? samebits::matrix_shape{extent(0), extent(1)}
                                       : k_last ? samebits::matrix_shape{count, 1}
                                                : samebits::matrix_shape{1, count};
  tile_shape tile;
  if (!find_scale_tile(shape, as_stored, k_last, tile)) {
    throw usage_error(cat(option, ": [", comma_separated(info.shape), "] scales fit no tiles of [",
                          as_stored.rows, ", ", as_stored.cols,
                          "]: one, one for each row of A or column of B, of 128 along K, or of "
                          "128 x 128"));
  }
  const const_matrix_view view =
      samebits::view_of(static_cast<const float*>(values_.data()), shape.rows, shape.cols);
  scales_ = {transposed_if(how, view),
             how == file_layout::transposed ? tile_shape{tile.cols, tile.rows} : tile};
}

}  // namespace fpinspect
