// Matrices, tiles and ratios of quantizations: implementation.
#include "fpinspect/quantize/quantize_source.hpp"

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/files.hpp"
#include "samebits/error.hpp"
#include "tensor_file/codes.hpp"

namespace fpinspect {

// --- Option values of `quantize` and `dequantize` ------------------------------------------------

namespace {

struct named_tile {
  const char* name;
  tile_shape tile;
};
constexpr named_tile whole_tiles[] = {{"row", {1, 0}}, {"column", {0, 1}}, {"tensor", {0, 0}}};

}  // namespace

tile_shape tile_argument(std::string_view option, std::string_view text) {
  for (const named_tile& whole : whole_tiles) {
    if (text == whole.name) return whole.tile;
  }
  try {
    const std::size_t split = text.find('x');
    if (split != std::string_view::npos) {
      constexpr std::uint64_t maximum = 1 << 20;  // far beyond every supported tile
      const tile_shape tile = {
          static_cast<std::int64_t>(unsigned_argument(option, text.substr(0, split), 0, maximum)),
          static_cast<std::int64_t>(unsigned_argument(option, text.substr(split + 1), 0, maximum))};
      static_cast<void>(scales_shape(0, 0, tile));
      return tile;
    }
  } catch (const usage_error&) {
  } catch (const invalid_argument&) {
  }
  refuse_value(option, text,
               "is not 1xG, Gx1 or GxG with G in 16, 32, 64, 128, 256, nor row, column or tensor");
}

std::string block_text(const tile_shape& tile) {
  for (const named_tile& whole : whole_tiles) {
    if (tile == whole.tile) return whole.name;
  }
  return std::to_string(tile.rows) + "x" + std::to_string(tile.cols);
}

const recipe_preset* recipe_argument(std::string_view option, std::string_view text) {
  if (const recipe_preset* found = find_recipe(upper(text))) return found;
  refuse_name(option, text, joined(recipe_presets, [](const auto& p) { return p.name; }));
}

executor quantizing_backend_argument(std::string_view name) {
  // Also refuses an unsupported SAMEBITS_BACKEND.
  executor where = host_backend_argument(name);
  if (name.empty()) where.backend = {};
  return where;
}

// --- Matrices that `quantize`, `diff` and `tensor --recipes` read --------------------------------

matrix_shape matrix_of(const tensor_info& info) {
  if (info.shape.empty()) return {1, 1};
  std::uint64_t rows = 1;
  for (std::size_t k = 0; k + 1 < info.shape.size(); ++k) rows *= info.shape[k];
  return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(info.shape.back())};
}

matrix_shape judged_matrix_of(const tensor_info& info, bool of_weight) {
  if (!of_weight || info.shape.size() <= 2) return matrix_of(info);
  std::uint64_t rest = 1;
  for (std::size_t k = 1; k < info.shape.size(); ++k) rest *= info.shape[k];
  return {static_cast<std::int64_t>(info.shape.front()), static_cast<std::int64_t>(rest)};
}

std::uint64_t scale_bits_of(const recipe& rules, const matrix_shape& matrix) {
  if (rules.tile == tile_shape{0, 0}) return 0;
  const matrix_shape scales = scales_shape(matrix.rows, matrix.cols, rules.tile);
  const int bits = spec_of(rules.scale_format).storage_bits;
  return static_cast<std::uint64_t>(scales.rows * scales.cols * bits);
}

void require_quantizable(format_id format, const std::string& input) {
  if (is_quantizable(format)) return;
  tensor_file::unsupported(
      escape_path(input) + ": elements are " + std::string(name(format)) +
      "; fp32, fp16 and bf16 are quantized, others after `fpinspect convert --to fp32`");
}

source_matrix matrix_of(const source_tensor& tensor, const matrix_shape& shape) {
  if (shape.rows < 0 || shape.cols < 0) {
    tensor_file::unsupported(tensor.file->shown_path(), ": tensor ", quote(tensor.info.name),
                             ": a matrix has fewer than 2^63 rows and columns");
  }
  source_matrix m;
  const auto direct = tensor.view();
  if (!direct) {
    m.read.resize(tensor.info.count * bytes_each(tensor.format()));
    tensor.read(0, tensor.info.count, m.read.data());
  }
  const void* const data = direct ? direct->data() : m.read.data();
  m.view = view_of_codes(tensor.format(), data, shape.rows, shape.cols);
  return m;
}

bool is_zero_tile(const const_matrix_view& in, const tile_shape& tile, std::int64_t tile_row,
                  std::int64_t tile_col) {
  const auto rows = std::max<std::int64_t>(tile.rows == 0 ? in.rows : tile.rows, 1);
  const auto cols = std::max<std::int64_t>(tile.cols == 0 ? in.cols : tile.cols, 1);
  const std::size_t bytes = bytes_each(in.format);
  const auto* const data = static_cast<const std::byte*>(in.data);
  for (std::int64_t r = tile_row * rows; r < std::min(in.rows, (tile_row + 1) * rows); ++r) {
    for (std::int64_t c = tile_col * cols; c < std::min(in.cols, (tile_col + 1) * cols); ++c) {
      const auto at = static_cast<std::size_t>(r * in.row_stride + c * in.col_stride);
      std::uint32_t code = 0;
      std::memcpy(&code, data + at * bytes, bytes);
      if (code << (33 - 8 * bytes) != 0) return false;  // without the sign
    }
  }
  return true;
}

std::uint64_t lost_tiles(const const_matrix_view& in, const const_matrix_view& scales,
                         const tile_shape& tile) {
  std::uint64_t lost = 0;
  for (std::int64_t r = 0; r < scales.rows; ++r) {
    for (std::int64_t c = 0; c < scales.cols; ++c) {
      if (is_zero_tile(scales, {1, 1}, r, c) && !is_zero_tile(in, tile, r, c)) ++lost;
    }
  }
  return lost;
}

std::uint64_t lost_tiles_by(const recipe_preset& preset, const const_matrix_view& in,
                            const executor& where) {
  const recipe& rules = preset.rules;
  if (rules.scale_format != format_id::e4m3) return 0;
  owned_matrix codes(rules.code_format, {in.rows, in.cols});
  owned_matrix scales(rules.scale_format, scales_shape(in.rows, in.cols, rules.tile));
  samebits::quantize(in, {.codes = codes.view(), .scales = scales.view()}, rules, where);
  return lost_tiles(in, scales.view(), rules.tile);
}

named_tensor owned_matrix::tensor(std::string name) {
  const dtype type = own_type(format);
  bytes = tensor_file::pack_codes(type, bytes);
  return {std::move(name), type, extents_of(shape), bytes};
}

owned_matrix requantized(const const_matrix_view& in, const recipe& rules, format_id to,
                         const executor& where) {
  owned_matrix codes(to, {in.rows, in.cols});
  owned_matrix scales(rules.scale_format, scales_shape(in.rows, in.cols, rules.tile));
  samebits::quantize(in, {.codes = codes.view(), .scales = scales.view()}, rules, where);
  owned_matrix values(format_id::fp32, codes.shape);
  samebits::dequantize(codes.view(), scales.view(), values.view(), rules.tile, where);
  return values;
}

// --- Signal-to-quantization-noise ratios ---------------------------------------------------------

std::optional<double> sqnr_db(double signal, double noise) {
  const bool usable = noise > 0.0 && signal > 0.0 && std::isfinite(noise) && std::isfinite(signal);
  if (!usable) return std::nullopt;
  return 10.0 * std::log10(signal / noise);
}

sqnr sqnr_of(const quantize_statistics& s, bool saturating) {
  if (s.elements == 0) return {.empty = true, .reason = "there are no elements"};
  if (!saturating && s.saturated != 0) {
    return {.reason = cat(s.saturated, " became Inf or NaN")};
  }
  if (const auto db = sqnr_db(s.signal, s.noise)) return {.db = db};
  if (s.nan + s.inf != 0) return {.reason = cat(s.nan + s.inf, " not finite")};
  if (s.underflowed != 0) return {.reason = cat(s.underflowed, " became 0")};
  if (s.noise == 0) return {.exact = true};
  return {.reason = "signal or noise is beyond binary64"};
}

sqnr sqnr_of(const cast_effect& effect, const cast_statistics& stats) {
  if (stats.count == 0) return {.empty = true, .reason = "there are no elements"};
  if (effect.changed == 0) return {.exact = true};
  std::string reason;
  add_count(reason, effect.underflow, "became 0");
  add_count(reason, effect.to_inf, "became Inf");
  add_count(reason, effect.to_nan, "became NaN");
  add_count(reason, effect.to_max, "became finite");
  if (!reason.empty()) return {.reason = reason};
  if (const auto db = sqnr_db(effect.signal, effect.noise)) return {.db = db};
  return {.reason = "signal or noise is beyond binary64"};
}

}  // namespace fpinspect
