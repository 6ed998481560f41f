// Matrices and tiles that `quantize`, `dequantize`, `diff` and `tensor --recipes` read, and option
// values for them; signal-to-quantization-noise ratios, and why a ratio is missing.
#pragma once

#include "fpinspect/tensors/source/source.hpp"
#include "samebits/recipe.hpp"

namespace fpinspect {

// --- Option values of `quantize` and `dequantize` ------------------------------------------------

// All functions throw usage_error; the message names `option` and the accepted values.

/// Parses "1x128", or row, column, tensor.
tile_shape tile_argument(std::string_view option, std::string_view text);

/// The text of a tile, in the form that tile_argument() reads.
std::string block_text(const tile_shape& tile);

/// The preset with this name; lower case is accepted.
const recipe_preset* recipe_argument(std::string_view option, std::string_view text);

/// The executor with this name, on all hardware threads. Without a name, the call chooses the
/// backend. Throws backend_error as host_backend_argument() does.
executor quantizing_backend_argument(std::string_view name);

// --- Matrices that are read from a file, and matrices to write -----------------------------------

/// The tensor as a matrix: leading dimensions merge into rows; a tensor of rank 1 is one row.
matrix_shape matrix_of(const tensor_info& info);

/// The matrix on which recipes are judged. Weights of rank above 2 are [out, rest], as matrix products
/// use them: the last dimension of a convolution is a few elements.
///
/// @param of_weight  whether the tensor has the shape of a weight
matrix_shape judged_matrix_of(const tensor_info& info, bool of_weight);

/// The shape as that of a tensor.
inline std::vector<std::uint64_t> extents_of(const matrix_shape& shape) {
  return {static_cast<std::uint64_t>(shape.rows), static_cast<std::uint64_t>(shape.cols)};
}
/// "[64, 576]"
inline std::string shape_text(const matrix_shape& shape) {
  return cat("[", shape.rows, ", ", shape.cols, "]");
}

/// Bits of the scales of all tiles; 0 for one scale of the whole matrix.
std::uint64_t scale_bits_of(const recipe& rules, const matrix_shape& matrix);

/// Whether elements of this format can be quantized: fp32, fp16 or bf16.
inline bool is_quantizable(format_id format) {
  return format == format_id::fp32 || format == format_id::fp16 || format == format_id::bf16;
}

/// Throws file_error for elements that cannot be quantized; `input` names the file.
void require_quantizable(format_id format, const std::string& input);

/// The elements of a tensor: in place in the mapped file, or copied to memory. Valid as long as the
/// file is open.
struct source_matrix {
  std::vector<std::byte> read;
  const_matrix_view view;
};
/// @param shape  of as many elements as the tensor
/// @throws file_error  if the matrix has 2^63 or more rows or columns, which only a tensor without
///   elements can have
source_matrix matrix_of(const source_tensor& tensor, const matrix_shape& shape);
inline source_matrix matrix_of(const source_tensor& tensor) {
  return matrix_of(tensor, matrix_of(tensor.info));
}

/// What a preset does to a matrix.
inline quantize_statistics statistics_by(const recipe_preset& preset, format_id to,
                                         const const_matrix_view& in, const executor& where) {
  quantize_statistics statistics;
  samebits::quantize(in, {.codes = {.format = to}, .statistics = &statistics}, preset.rules, where);
  return statistics;
}

/// Whether all elements of a tile, which have at most 32 bits, are +0 or -0.
bool is_zero_tile(const const_matrix_view& in, const tile_shape& tile, std::int64_t tile_row,
                  std::int64_t tile_col);

/// The number of tiles whose scale became zero although an element is not: all their values are lost.
/// 0 for scales that are never zero, those of rules with one level.
///
/// @param scales  of the tiles of `in`, in e4m3
std::uint64_t lost_tiles(const const_matrix_view& in, const const_matrix_view& scales,
                         const tile_shape& tile);
/// lost_tiles() of a matrix by a preset.
std::uint64_t lost_tiles_by(const recipe_preset& preset, const const_matrix_view& in,
                            const executor& where);

/// A matrix in memory, to be written to a file: codes of elements, or scales.
struct owned_matrix {
  owned_matrix(format_id f, const matrix_shape& s)
      : format(f), shape(s), bytes(static_cast<std::size_t>(s.rows * s.cols * storage_bytes(f))) {}

  matrix_view view() { return view_of_codes(format, bytes.data(), shape.rows, shape.cols); }
  /// The matrix as a tensor to write. Its element type is that of the format; codes of 4 and 6 bits
  /// are packed in place, and view() must not be used afterwards.
  [[nodiscard]] named_tensor tensor(std::string name);

  format_id format;
  matrix_shape shape;
  std::vector<std::byte> bytes;
};

/// Quantizes by a recipe of one level, and dequantizes to fp32.
/// @param to  the format of the codes
owned_matrix requantized(const const_matrix_view& in, const recipe& rules, format_id to,
                         const executor& where);

// --- Signal-to-quantization-noise ratios ---------------------------------------------------------

/// 10 * log10(signal / noise) in dB. Nothing if there is no noise or no signal, or if the sums
/// overflow binary64.
std::optional<double> sqnr_db(double signal, double noise);

/// A ratio, or the reason why there is none.
struct sqnr {
  std::optional<double> db = {};
  bool exact = false;  ///< no element changed
  bool empty = false;  ///< there are no elements
  /// Why there is neither a ratio nor `exact`; a sentence without its full stop.
  std::string reason = {};

  /// The ratio for conditions: infinity if there is nothing to lose, minus infinity if it is
  /// missing for another reason, so that every `sqnr<X` holds.
  [[nodiscard]] double level() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return db.value_or(exact || empty ? infinity : -infinity);
  }
  /// "34.2 dB", "exact" or `none`.
  [[nodiscard]] std::string text(const char* none = "-") const {
    if (db) return cat(fixed(*db, 1), " dB");
    return exact ? "exact" : none;
  }
  /// The JSON note beside a null ratio: "exact" or the reason. Nothing if there is a ratio.
  [[nodiscard]] std::optional<std::string> note() const {
    if (db) return std::nullopt;
    return exact ? "exact" : reason;
  }
};

/// The ratio from the statistics of a quantization.
///
/// @param saturating  whether elements beyond the largest code become this code. Otherwise they
///   become Inf or NaN and are missing from the sums, and then there is no ratio.
sqnr sqnr_of(const quantize_statistics& s, bool saturating);

/// The ratio of a conversion that destroyed no element, else the reason why there is none.
sqnr sqnr_of(const cast_effect& effect, const cast_statistics& stats);

}  // namespace fpinspect
