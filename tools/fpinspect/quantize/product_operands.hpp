// Operands of a matrix product that are read from files, and their scales.
#pragma once

#include <charconv>
#include <system_error>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/matmul.hpp"

namespace fpinspect {

/// Whether the file stores the operand as it is or transposed.
enum class file_layout : std::uint8_t { as_is, transposed };

inline const_matrix_view transposed_if(file_layout how, const const_matrix_view& v) {
  return how == file_layout::transposed ? samebits::transposed(v) : v;
}

/// Parses a complete text as a positive decimal number; returns false for any other text.
inline bool parse_scale(const std::string& text, float& scale) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, scale);
  return error == std::errc() && stop == end && std::isfinite(scale);
}

/// Finds the tile shape that belongs to scales of this shape. `operand` is in storage order;
/// `k_last` says that K runs along its columns.
inline bool find_scale_tile(const matrix_shape& scales, const const_matrix_view& operand,
                            bool k_last, tile_shape& tile) {
  const std::array<tile_shape, 4> along = {tile_shape{0, 0}, tile_shape{1, 0}, tile_shape{1, 128},
                                           tile_shape{128, 128}};
  for (const tile_shape& t : along) {
    tile = k_last ? t : tile_shape{t.cols, t.rows};
    if (scales_shape(operand.rows, operand.cols, tile) == scales) return true;
  }
  return false;
}

/// One operand of a product.
struct product_operand {
  /// @param which  the operand's name in errors
  /// @param input  values, which are rounded to nearest even to `format`, or codes of `format`
  /// @param option  the name of `from` in errors
  /// @param from  the format of codes that are stored as integers, or empty
  /// @throws usage_error  if the tensor does not have two dimensions, or for fp64
  /// @note Also throws as open_source() does.
  product_operand(std::string_view which, const std::string& input, std::string_view option,
                  const std::string& from, format_id format, file_layout how)
      : source(open_source(which, input, option, from)) {
    const auto& info = source.info;
    refuse_if(info.shape.size() != 2, which, ": must have two dimensions, got ",
              shape_text(info.shape));
    refuse_if(source.format() == format_id::fp64, which, ": ", type_text(info, source.how),
              " values are not taken; `fpinspect convert` them first");
    read = matrix_of(source);
    values = codes = transposed_if(how, read.view);
    if (source.format() == format) return;
    rounded.emplace(format, matrix_of(info));
    samebits::convert(read.view, rounded->view());
    codes = transposed_if(how, rounded->view());
  }

  [[nodiscard]] bool was_rounded() const { return rounded && !rounded->bytes.empty(); }

  source_tensor source;
  const_matrix_view values;  ///< from which the codes were rounded; the codes if they were given
  const_matrix_view codes;

 private:
  source_matrix read;
  std::optional<owned_matrix> rounded;
};

/// The operand to which scales belong. It determines which dimension is K.
enum class operand_side : std::uint8_t { a, b };

/// Scales of an operand: a number, or an fp32 tensor whose shape determines the tiles.
struct product_scales {
  /// @param text  a positive decimal number, a FILE, or empty for no scales
  /// @param operand  [M, K] or [K, N]; the scale tensor is in the operand's storage order
  /// @throws usage_error  for invalid scales; the message names `option`
  /// @throws file_error  if the file cannot be read
  product_scales(std::string_view option, const std::string& text, operand_side side,
                 file_layout how, const const_matrix_view& operand) {
    if (text.empty()) return;
    float number = 0;
    if (parse_scale(text, number)) {
      values = {number};
      scales = {view_of(values.data(), 1, 1), {0, 0}};
      return;
    }
    const source_tensor source = open_source(option, text, option, "");
    const auto& info = source.info;
    refuse_if(
        source.format() != format_id::fp32 || source.how.integer_values || info.shape.size() > 2,
        option, ": scales are fp32 in at most two dimensions, got ", type_text(info, source.how),
        " ", shape_text(info.shape));
    values.resize(info.count);
    source.read(0, info.count, reinterpret_cast<std::byte*>(values.data()));
    const const_matrix_view as_stored = transposed_if(how, operand);
    const bool k_last = (side == operand_side::a) == (how == file_layout::as_is);
    const auto extent = [&](std::size_t i) { return static_cast<std::int64_t>(info.shape[i]); };
    const auto count = static_cast<std::int64_t>(info.count);
    const bool flat = info.shape.size() < 2;  // one scale per row or column
    const matrix_shape shape = !flat    ? matrix_shape{extent(0), extent(1)}
                               : k_last ? matrix_shape{count, 1}
                                        : matrix_shape{1, count};
    tile_shape tile;
    refuse_if(!find_scale_tile(shape, as_stored, k_last, tile), option, ": ",
              shape_text(info.shape), " scales fit no tiles of [", as_stored.rows, ", ",
              as_stored.cols,
              "]: one, one for each row of A or column of B, of 128 along K, or of "
              "128 x 128");
    const const_matrix_view view =
        view_of(static_cast<const float*>(values.data()), shape.rows, shape.cols);
    scales = {transposed_if(how, view),
              how == file_layout::transposed ? tile_shape{tile.cols, tile.rows} : tile};
  }

  std::vector<float> values;
  operand_scales scales;
};

}  // namespace fpinspect
