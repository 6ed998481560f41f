// Quantized matrices in files: codes and scales, found by the names of all layouts.
#pragma once

#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/tensors/source/selection.hpp"

namespace fpinspect {

/// A matrix of codes with its scales.
struct quantized_tensor {
  shown_tensor codes;
  shown_tensor scales;
  tile_shape tile;
  scale_rule scale = scale_rule::te;
  float tensor_scale = 1;  ///< read by rules with two levels
  std::string tensor_scale_name = {};
};

/// The quantized matrices among tensors, in their order. Tiles are those of the metadata; without
/// metadata, the shapes of codes and scales decide.
/// @param strictly  refuses scales that do not have the shape of any tiles; else leaves them out
/// @throws file_error
std::vector<quantized_tensor> quantized_among(std::span<const shown_tensor> tensors,
                                              bool strictly = true);

/// The tile that `quantize` of one tensor notes in a file, that of `codes`. Nothing for other files.
/// @throws file_error  if the text there is no tile
std::optional<tile_shape> noted_tile(const tensor_reader& file, const std::filesystem::path& path);

/// Codes and scales as `quantize` of one tensor writes them.
/// @param suffix  behind "codes" and "scales": empty, "_col" or "_t"
/// @param row_tile  the tile of the output without suffix
/// @throws file_error  if the file has no such matrices; `path` names it
quantized_tensor quantized_output(const std::shared_ptr<const tensor_reader>& file,
                                  const std::filesystem::path& path, const std::string& suffix,
                                  const tile_shape& row_tile);

/// The values of a quantized matrix, computed where they are read.
class quantized_matrix {
 public:
  /// Keeps the scales in memory, unless they are usable where they are in the file.
  explicit quantized_matrix(quantized_tensor stored);

  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] std::uint64_t cols() const { return cols_; }
  [[nodiscard]] tile_shape tile() const { return stored_.tile; }

  /// Codes times scales of rows [first, first + out.rows).
  /// @param out  in fp32, fp16 or bf16
  void dequantize(std::uint64_t first, const matrix_view& out, const executor& where) const;
  /// Elements [first, first + count) in fp32.
  void read(std::uint64_t first, std::uint64_t count, std::byte* out) const;

 private:
  quantized_tensor stored_;
  std::uint64_t rows_;
  std::uint64_t cols_;
  source_matrix scales_;
};

}  // namespace fpinspect
