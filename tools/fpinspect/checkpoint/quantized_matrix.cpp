// Quantized matrices in files: implementation.
#include "fpinspect/checkpoint/quantized_matrix.hpp"

#include "fpinspect/checkpoint/layout.hpp"
#include "fpinspect/cli/files.hpp"
#include "samebits/convert.hpp"

namespace fpinspect {
namespace {

/// The tiles whose scales have this shape; square tiles before others, those of 128 first.
std::optional<tile_shape> tile_of(const tensor_info& codes, const tensor_info& stored) {
  if (stored.count == 1) return tile_shape{0, 0};
  const matrix_shape matrix = matrix_of(codes);
  const matrix_shape scales = matrix_of(stored);
  std::vector<tile_shape> tiles;
  for (const std::int64_t size : {128, 64, 32, 256, 16}) {
    tiles.push_back({size, size});
    tiles.push_back({1, size});
  }
  if (scales.cols == 1) tiles.insert(tiles.begin(), {1, 0});
  const auto fits = std::ranges::find_if(tiles, [&](const tile_shape& tile) {
    return scales_shape(matrix.rows, matrix.cols, tile) == scales;
  });
  return fits == tiles.end() ? std::nullopt : std::optional(*fits);
}

/// The tile under a key of the metadata.
std::optional<tile_shape> tile_under(const std::string& key, const tensor_reader& file,
                                     const std::filesystem::path& path) {
  for (const auto& [name, text] : file.metadata()) {
    if (name != key) continue;
    try {
      return tile_argument(key, text);
    } catch (const usage_error& error) {
      refuse_content(path, error.what());
    }
  }
  return std::nullopt;
}

/// The tile of an output of `quantize`, of whose tile without suffix it notes `row_tile`.
tile_shape tile_of_output(const std::string& suffix, const tile_shape& row_tile) {
  return suffix.empty() ? row_tile : tile_shape{row_tile.cols, row_tile.rows};
}

/// The tile of codes in the metadata of their file.
std::optional<tile_shape> written_tile(const shown_tensor& codes) {
  const std::string& name = codes.info.name;
  const auto own = tile_under(cat(block_key, name), *codes.file, codes.path);
  if (own || !name.starts_with("codes")) return own;
  const auto noted = noted_tile(*codes.file, codes.path);
  return noted ? std::optional(tile_of_output(name.substr(5), *noted)) : std::nullopt;
}

bool is_matrix_of_codes(const shown_tensor& tensor) {
  const dtype type = tensor.info.type;
  return tensor.info.unread.empty() && tensor.info.shape.size() == 2 &&
         (type == dtype::f8_e4m3 || type == dtype::f8_e5m2 || type == dtype::f4 ||
          type == dtype::f6_e2m3 || type == dtype::f6_e3m2);
}

/// The names that the scales of these codes may have.
std::vector<std::string> names_of_scales(const std::string& codes) {
  std::vector<std::string> names;
  for (const std::string_view suffix : scales_suffixes) names.push_back(cat(codes, suffix));
  if (codes.starts_with("codes")) names.push_back("scales" + codes.substr(5));
  return names;
}

/// Reads the tensor's scale and the scale rule of codes whose scales are in e4m3. False if the file
/// notes no rule and need not.
bool read_second_level(quantized_tensor& one, bool strictly) {
  const std::string& codes = one.codes.info.name;
  const bool output = codes.starts_with("codes") &&  // of `quantize` of one tensor
                      one.scales.info.name == "scales" + codes.substr(5);
  const std::string key = output ? "samebits.scale_rule" : cat(rule_key, codes);
  one.tensor_scale_name = output ? "tensor_scale" : cat(codes, tensor_scale_suffix);
  for (const auto& [name, text] : one.codes.file->metadata()) {
    if (name != key) continue;
    one.scale = find_enumerator<scale_rule>(text).value_or(one.scale);
  }
  if (!has_two_levels(one.scale)) {
    if (!strictly) return false;
    refuse_content(one.codes.path, key, " must name a rule with two levels");
  }
  const tensor_info& info = one.codes.file->find(one.tensor_scale_name);
  refuse_content_if(info.count != 1 || info.type != dtype::f32, one.codes.path,
                    one.tensor_scale_name, " must be one number in F32");
  one.codes.file->read_codes(info, 0, 1, reinterpret_cast<std::byte*>(&one.tensor_scale));
  return true;
}

}  // namespace

std::vector<quantized_tensor> quantized_among(std::span<const shown_tensor> tensors,
                                              bool strictly) {
  std::map<std::string_view, const shown_tensor*> by_name;
  for (const shown_tensor& tensor : tensors) by_name.emplace(tensor.info.name, &tensor);
  std::vector<quantized_tensor> found;
  for (const shown_tensor& codes : tensors) {
    if (!is_matrix_of_codes(codes)) continue;
    for (const std::string& name : names_of_scales(codes.info.name)) {
      const auto scales = by_name.find(name);
      if (scales == by_name.end()) continue;
      quantized_tensor one = {codes, *scales->second, {}};
      if (one.scales.info.type == dtype::u8) one.scales.how = {format_id::e8m0};
      const auto written = written_tile(codes);
      const auto tile = written ? written : tile_of(codes.info, one.scales.info);
      const bool known = tile && one.scales.has_numbers();
      if (!known && !strictly) continue;
      refuse_content_if(!known, codes.path, name, " ", shape_text(one.scales.info.shape),
                        ": no scales of tiles of ", shape_text(matrix_of(codes.info)));
      one.tile = *tile;
      if (one.scales.info.type == dtype::f8_e4m3 && !read_second_level(one, strictly)) continue;
      found.push_back(std::move(one));
      break;
    }
  }
  return found;
}

std::optional<tile_shape> noted_tile(const tensor_reader& file, const std::filesystem::path& path) {
  return tile_under("samebits.block", file, path);
}

quantized_tensor quantized_output(const std::shared_ptr<const tensor_reader>& file,
                                  const std::filesystem::path& path, const std::string& suffix,
                                  const tile_shape& row_tile) {
  const auto load = [&](const std::string& name, std::initializer_list<format_id> among) {
    const tensor_info& info = file->find(name);
    const auto format = tensor_file::format_of(info.type);
    refuse_content_if(!format || !contains(among, *format) || info.shape.size() != 2, path, name,
                      " must be a matrix as `quantize` writes it, not ",
                      tensor_file::name(info.type), " ", shape_text(info.shape));
    return shown_tensor{{file, info, {*format}}, path};
  };
  using enum format_id;
  quantized_tensor result = {load("codes" + suffix, {e4m3, e5m2, e2m1, e2m3, e3m2}),
                             load("scales" + suffix, {fp32, e8m0, e4m3}),
                             tile_of_output(suffix, row_tile)};
  if (result.scales.format() == e4m3) read_second_level(result, true);
  const matrix_shape codes = matrix_of(result.codes.info);
  const matrix_shape scales = scales_shape(codes.rows, codes.cols, result.tile);
  refuse_content_if(scales != matrix_of(result.scales.info), path, result.scales.info.name,
                    ": shape must be ", shape_text(scales), ", not ",
                    shape_text(matrix_of(result.scales.info)));
  return result;
}

quantized_matrix::quantized_matrix(quantized_tensor stored)
    : stored_(std::move(stored)),
      rows_(stored_.codes.info.shape[0]),
      cols_(stored_.codes.info.shape[1]) {
  const matrix_shape matrix = matrix_of(stored_.codes.info);
  const matrix_shape shape = scales_shape(matrix.rows, matrix.cols, stored_.tile);
  refuse_content_if(
      static_cast<std::uint64_t>(shape.rows * shape.cols) != stored_.scales.info.count,
      stored_.codes.path, stored_.scales.info.name, " must be ", shape_text(shape), ", not ",
      shape_text(stored_.scales.info.shape));
  scales_ = matrix_of(stored_.scales, shape);
  if (!is_quantizable(stored_.scales.format()) || stored_.scales.format() == format_id::fp32)
    return;
  owned_matrix wide(format_id::fp32, shape);
  samebits::convert(scales_.view, wide.view(), {});
  const const_matrix_view view = wide.view();
  scales_ = {std::move(wide.bytes), view};
}

void quantized_matrix::dequantize(std::uint64_t first, const matrix_view& out,
                                  const executor& where) const {
  const std::uint64_t all = static_cast<std::uint64_t>(out.rows);
  const std::uint64_t tile_rows = stored_.tile.rows == 0
                                      ? std::max<std::uint64_t>(rows_, 1)
                                      : static_cast<std::uint64_t>(stored_.tile.rows);
  std::vector<std::byte> read;
  const auto direct = stored_.codes.view();
  if (!direct) {
    read.resize(all * cols_);
    stored_.codes.read(first * cols_, all * cols_, read.data());
  }
  const std::byte* codes = direct ? direct->data() + first * cols_ : read.data();
  const std::size_t scale_bytes = bytes_each(scales_.view.format);
  second_level level = {stored_.scale};
  if (has_two_levels(stored_.scale)) {
    level.tensor_scale =
        view_of_codes(format_id::fp32, static_cast<const void*>(&stored_.tensor_scale), 1, 1);
  }
  // A band that does not begin on a tile border is cut at the first one.
  for (std::uint64_t row = 0; row < all;) {
    const std::uint64_t in_tile = (first + row) % tile_rows;
    const std::uint64_t size = in_tile == 0 ? all - row : std::min(all - row, tile_rows - in_tile);
    const auto rows = static_cast<std::int64_t>(size);
    const matrix_shape shape = scales_shape(rows, out.cols, stored_.tile);
    const std::byte* const scales =
        static_cast<const std::byte*>(scales_.view.data) +
        (first + row) / tile_rows * static_cast<std::uint64_t>(shape.cols) * scale_bytes;
    matrix_view part = out;
    part.rows = rows;
    part.data = static_cast<std::byte*>(out.data) + row * cols_ * bytes_each(out.format);
    samebits::dequantize(
        view_of_codes(stored_.codes.format(), static_cast<const void*>(codes), rows, out.cols),
        view_of_codes(scales_.view.format, static_cast<const void*>(scales), shape.rows,
                      shape.cols),
        part, stored_.tile, level, where);
    codes += size * cols_;
    row += size;
  }
}

void quantized_matrix::read(std::uint64_t first, std::uint64_t count, std::byte* out) const {
  if (count == 0) return;
  const std::uint64_t row = first / cols_;
  const std::uint64_t rows = (first + count - 1) / cols_ - row + 1;
  owned_matrix values(format_id::fp32,
                      {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols_)});
  dequantize(row, values.view(), {.threads = 1});
  std::memcpy(out, values.bytes.data() + (first - row * cols_) * sizeof(float),
              count * sizeof(float));
}

}  // namespace fpinspect
