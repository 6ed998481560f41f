// Quantization of a matrix, and back.
#include "engine/cases/quantize.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "engine/cases/operations.hpp"
#include "engine/core/text.hpp"
#include "engine/inputs/families.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "samebits/quantize_list.hpp"
#include "samebits/scalar.hpp"

namespace samebits::support {
namespace {

tile_shape draw_tile(const word_source& next) {
  const std::int64_t size = std::int64_t{16} << below(5, next);
  switch (below(6, next)) {
    case 0: return {1, size};
    case 1: return {size, 1};
    case 2: return {size, size};
    case 3: return {1, 0};
    case 4: return {0, 1};
    default: return {0, 0};
  }
}

/// Beside a multiple of the tile, or small.
std::int64_t draw_size(std::int64_t tile, const word_source& next) {
  if (tile > 1 && below(2, next) == 0) {
    return std::max<std::int64_t>(0, tile * below(4, next) + below(3, next) - 1);
  }
  return below(8, next) == 0 ? below(3, next) : below(70, next);
}

float draw_bound(const word_source& next) {
  // Around the magnitudes of draw_element, so that bounds matter.
  const auto field = static_cast<std::uint32_t>(100 + below(55, next));
  return std::bit_cast<float>(field << 23 | static_cast<std::uint32_t>(next() >> 41));
}

quantize_options draw_options(const word_source& next) {
  quantize_options o;
  o.tile = draw_tile(next);
  o.scale = static_cast<scale_rule>(below(one_level_scale_rules, next));
  if (below(3, next) == 0) o.eps = draw_bound(next);
  if (below(3, next) == 0) o.upper_bound = draw_bound(next);
  o.nonfinite = any_enumerator<nonfinite>(next);
  o.rounding = below(2, next) == 0 ? rounding::nearest_even : rounding::stochastic;
  if (below(2, next) == 0) o.overflow = any_enumerator<overflow>(next);
  o.nan = any_enumerator<nan_policy>(next);
  o.scale_overflow = any_enumerator<scale_overflow>(next);
  o.random = draw_random_stream(next);
  return o;
}

/// Makes the rule of the case one with two levels.
void draw_two_levels(quantize_case& c, const word_source& next) {
  const int count = enum_count<scale_rule> - one_level_scale_rules;
  c.options.scale = static_cast<scale_rule>(one_level_scale_rules + below(count, next));
  if (below(3, next) != 0) c.to = format_id::e2m1;
  c.scale_format = below(4, next) == 0 ? format_id::fp32 : format_id::e4m3;
  if (is_four_over_six(c.options.scale)) {
    constexpr tile_shape tiles[] = {{1, 16}, {16, 1}, {16, 16}};
    c.options.tile = tiles[below(3, next)];
  }
  c.tensor_scale = below(3, next) == 0;
}

/// A code of the source near 2^exponent, or a special one.
std::uint64_t draw_element(const quantize_case& c, int exponent, std::int64_t kind,
                           const word_source& next) {
  if (kind == 0) return draw_any_code(c.from, c.to, next);
  if (kind == 1)
    return next() % 2 == 0 ? 0u : convert_code(format_id::fp32, c.from, 0x80000000u).code;
  if (kind == 2 && below(40, next) == 0) {
    return draw_code(code_family::special, c.from, c.to, next);
  }
  // Few mantissa bits, so that scaled elements meet ties; exponents over some 12 binades.
  const int e = exponent - static_cast<int>(below(12, next));
  const auto mantissa = static_cast<std::uint32_t>(next() >> 41);
  const std::uint32_t kept = next() % 2 == 0 ? mantissa : mantissa & 0x7C0000u;
  const auto field = static_cast<std::uint32_t>(std::clamp(e + 127, 0, 254));
  const std::uint32_t sign = next() % 2 == 0 ? 0x80000000u : 0u;
  return convert_code(format_id::fp32, c.from, sign | field << 23 | kept).code;
}

/// Shapes that the kernels of a GPU convert in one pass: rows of whole vectors, several tiles and
/// block tiles each way, and rows that take a block several turns.
matrix_shape draw_large_shape(const word_source& next) {
  switch (below(8, next)) {
    case 0: return {1 + below(3, next), 1024 * (1 + below(3, next))};
    case 1: return {1 + below(20, next), 128 * (1 + below(8, next))};
    case 2: return {100 + below(60, next), 128 * (1 + below(2, next))};
    case 3: return {1, 8 * (1 + below(2500, next))};
    default: return {1 + below(70, next), 8 * (1 + below(24, next))};
  }
}

/// Gives every third case such a shape.
void draw_large(quantize_case& c, const word_source& next) {
  if (below(3, next) != 0) return;
  c.plain = below(8, next) != 0;
  const matrix_shape s = draw_large_shape(next);
  lay_out(c, s.rows, s.cols, next);
}

quantize_case draw_quantization(matrix_sizes sizes, const word_source& next) {
  quantize_case c = draw_quantize_case(next);
  if (below(4, next) == 0) {
    draw_two_levels(c, next);
    lay_out(c, c.in.rows, c.in.cols, next);
  }
  if (sizes == matrix_sizes::any) draw_large(c, next);
  if (below(2, next) == 0) {  // what draws random bits by whole blocks asks for
    c.options.random.offset &= ~std::uint64_t{15};
    if (c.options.random.pitch) *c.options.random.pitch &= ~std::uint64_t{15};
    c.options.upper_bound = quantize_options{}.upper_bound;
    c.options.overflow = overflow::saturate;
    c.options.nan = nan_policy::canonical;
  }
  c.wanted.codes_transposed = below(3, next) == 0;
  c.wanted.codes = !c.wanted.codes_transposed || below(2, next) == 0;
  c.wanted.scales = below(4, next) != 0;
  c.wanted.scales_transposed = below(4, next) == 0;
  c.wanted.statistics = below(4, next) == 0;
  c.inverse_scales =
      c.scale_format == format_id::fp32 && !has_two_levels(c.options.scale) && below(6, next) == 0;
  constexpr std::uint32_t flags[] = {0, 0, 0, 1, 2, 0x80000000};
  if (below(16, next) == 0) c.skip = one_of(flags, next);
  return c;
}

/// Numbers of all kinds, as scales or inverse_scales.
strided_buffer random_scales(const quantize_case& c, format_id format, const array_layout& layout) {
  strided_buffer buffer(format, layout);
  std::mt19937_64 engine(c.content + 1);
  for (std::int64_t i = 0; i < layout.span(); ++i) {
    if (storage_bytes(format) == 1) {
      buffer.store(i, engine() & 0xFF);
      continue;
    }
    const auto field = static_cast<std::uint32_t>(100 + engine() % 55);
    const bool ordinary = engine() % 4 != 0;
    buffer.store(i, ordinary ? field << 23 | static_cast<std::uint32_t>(engine() >> 41)
                             : draw_any_code(format_id::fp32, c.from, [&] { return engine(); }));
  }
  return buffer;
}

/// A tensor's scale: around that of ordinary numbers, or any magnitude.
strided_buffer random_tensor_scale(const quantize_case& c) {
  strided_buffer buffer(format_id::fp32, dense_layout(1, 1));
  std::mt19937_64 engine(c.content + 2);
  const auto any = static_cast<std::uint32_t>(engine());
  const std::uint32_t ordinary = (100 + any % 55) << 23 | (any >> 9);
  const std::uint32_t magnitude = numerics::binary32::amax_bits(any);
  buffer.store(0, engine() % 4 == 0 ? magnitude : ordinary);
  return buffer;
}

void add_tensor(buffers& all, const quantize_case& c, const std::string& prefix) {
  const auto result = [&](const char* which, format_id format, const array_layout& layout) {
    all.push_back({prefix + which, buffer_use::result, strided_buffer(format, layout)});
  };
  all.push_back({prefix + "in", buffer_use::given, matrix_of(c)});
  if (c.inverse_scales) {
    all.push_back({prefix + "inverse_scales", buffer_use::given,
                   random_scales(c, format_id::fp32, c.scales)});
  } else {
    result("inverse_scales", format_id::fp32, {});
  }
  result("codes", c.to, c.codes);
  result("scales", c.scale_format, c.scales);
  result("codes_transposed", c.to, c.codes_transposed);
  result("scales_transposed", c.scale_format, c.scales_transposed);
  all.push_back({prefix + "tensor_scale", buffer_use::fixed, random_tensor_scale(c)});
  result("tensor_scale written", format_id::fp32, dense_layout(1, 1));
}

buffers memory_of_quantization(const quantize_case& c) {
  buffers all;
  add_tensor(all, c, "");
  all.push_back(
      {"statistics", buffer_use::result,
       strided_buffer(format_id::fp64, dense_layout(1, sizeof(quantize_statistics) / 8))});
  strided_buffer flag(format_id::fp32, dense_layout(1, 1));
  flag.store(0, c.skip.value_or(0));
  all.push_back({"skip flag", buffer_use::fixed, std::move(flag)});
  return all;
}

returned_values quantize_on(const quantize_case& c, const call_site& site) {
  site.target.enqueue([&] {
    quantize(site.views[quantize_buffers::in], outputs_of(c, site), options_of(c, site),
             site.target.where(c.threads));
  });
  return {};
}

buffers memory_of_dequantization(const quantize_case& c) {
  strided_buffer codes(c.to, c.codes);
  std::mt19937_64 engine(c.content);
  for (std::int64_t i = 0; i < c.codes.span(); ++i) codes.store(i, engine() & 0xFF);
  return {{"codes", buffer_use::given, std::move(codes)},
          {"scales", buffer_use::given, random_scales(c, c.scale_format, c.scales)},
          {"out", buffer_use::result, strided_buffer(c.from, c.codes)},
          {"tensor_scale", buffer_use::fixed, random_tensor_scale(c)}};
}

returned_values dequantize_on(const quantize_case& c, const call_site& site) {
  site.target.enqueue([&] {
    second_level level{c.options.scale};
    if (has_two_levels(level.scale)) level.tensor_scale = site.views[3];
    dequantize(site.views[0], site.views[1], site.views[2], c.options.tile, level,
               site.target.where(c.threads));
  });
  return {};
}

list_quantization draw_list(matrix_sizes sizes, const word_source& next) {
  list_quantization list;
  quantize_case first = draw_quantization(sizes, next);
  if (sizes == matrix_sizes::any && has_two_levels(first.options.scale)) {
    first.options.scale = scale_rule::te;  // no lists on devices
    first.scale_format = format_id::fp32;
    first.tensor_scale = false;
  }
  const bool plain = below(2, next) == 0, transposed = below(3, next) == 0;
  const std::int64_t tensors = below(7, next);
  for (std::int64_t i = 0; i < tensors; ++i) {
    quantize_case t = first;
    t.plain = plain;
    if (sizes == matrix_sizes::any && below(3, next) == 0) {
      const matrix_shape s = draw_large_shape(next);
      lay_out(t, s.rows, s.cols, next);
    } else {
      lay_out(t, below(40, next), plain ? 8 * below(12, next) : below(90, next), next);
    }
    t.wanted = {true, below(4, next) != 0, transposed, below(4, next) == 0, false};
    if (transposed) t.wanted.codes = below(2, next) == 0;
    t.inverse_scales = t.scale_format == format_id::fp32 && !has_two_levels(t.options.scale) &&
                       below(8, next) == 0;
    t.tensor_scale = false;
    t.content = next();
    list.tensors.push_back(std::move(t));
  }
  return list;
}

buffers memory_of_list(const list_quantization& list) {
  buffers all;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    add_tensor(all, list.tensors[i], "tensor " + std::to_string(i) + " ");
  }
  return all;
}

returned_values quantize_list_on(const list_quantization& list, const call_site& site) {
  if (list.tensors.empty()) return {};  // lies on the host
  std::vector<quantize_item> items;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    const std::size_t first = i * quantize_buffers::of_tensor;
    quantize_item item{.in = site.views[first + quantize_buffers::in],
                       .outputs = outputs_of(list.tensors[i], site, first)};
    if (list.tensors[i].inverse_scales) {
      item.inverse_scales = site.views[first + quantize_buffers::inverse_scales];
    }
    items.push_back(std::move(item));
  }
  site.target.enqueue([tensors = quantize_list(std::move(items), list.tensors[0].options),
                       where = site.target.where(list.threads)] { quantize(tensors, where); });
  return {};
}

}  // namespace

void lay_out(quantize_case& c, std::int64_t rows, std::int64_t cols, const word_source& next) {
  const matrix_shape scales = scales_shape(rows, cols, c.options.tile);
  const auto laid = [&](std::int64_t r, std::int64_t k, array_side side) {
    return c.plain ? dense_layout(r, k) : draw_layout(r, k, side, next);
  };
  c.in = laid(rows, cols, array_side::read);
  c.codes = laid(rows, cols, array_side::written);
  c.scales = laid(scales.rows, scales.cols, array_side::written);
  c.codes_transposed = laid(cols, rows, array_side::written);
  c.scales_transposed = laid(scales.cols, scales.rows, array_side::written);
}

quantize_case draw_quantize_case(const word_source& next) {
  constexpr format_id sources[] = {format_id::fp32, format_id::bf16, format_id::fp16};
  quantize_case c;
  c.from = sources[below(3, next)];
  constexpr format_id targets[] = {format_id::e4m3, format_id::e5m2, format_id::e4m3,
                                   format_id::e5m2, format_id::e2m1, format_id::e2m1,
                                   format_id::e2m3, format_id::e3m2};
  c.to = one_of(targets, next);
  c.options = draw_options(next);
  if (is_power_of_two(c.options.scale) && below(2, next) == 0) c.scale_format = format_id::e8m0;
  std::int64_t rows = draw_size(c.options.tile.rows, next);
  std::int64_t cols = draw_size(c.options.tile.cols, next);
  if (below(64, next) == 0) {  // enough for several threads
    rows = 1 + below(200, next);
    cols = 70000 / rows;
  }
  c.plain = below(2, next) == 0;
  lay_out(c, rows, cols, next);
  c.threads = static_cast<int>(below(9, next));
  c.content = next();
  return c;
}

namespace {

/// Every `step`-th amax as a tile of one element, from the content on.
strided_buffer amaxes_of(const quantize_case& c) {
  strided_buffer in(c.from, c.in);
  for (std::int64_t i = 0; i < c.in.cols; ++i) {
    in.store(i, static_cast<std::uint32_t>(c.content) + static_cast<std::uint32_t>(i) * amax_step);
  }
  return in;
}

/// Ones, and in each second row an Inf. It makes a tile's scale 1 under most policies; nothing bounds
/// the tile's other elements then, some of which are large and lie in another part of the work.
strided_buffer large_beside_inf(const quantize_case& c) {
  strided_buffer in(c.from, c.in);
  const auto store = [&](std::int64_t row, std::int64_t col, float value) {
    in.store(c.in.at(row, col),
             convert_code(format_id::fp32, c.from, std::bit_cast<std::uint32_t>(value),
                          {.overflow = overflow::ieee})
                 .code);
  };
  const std::int64_t cols = c.in.cols;
  for (std::int64_t i = 0; i < c.in.rows * cols; ++i) store(i / cols, i % cols, 1.0f);
  for (std::int64_t row = 0; row < c.in.rows; row += 2) {
    store(row, 5, std::numeric_limits<float>::infinity());
    store(row, cols - 1, 60000.0f);  // above the largest e4m3 and e5m2
    store(row + 1, cols - 140, c.from == format_id::fp16 ? -65504.0f : -1e38f);
  }
  return in;
}

}  // namespace

strided_buffer matrix_of(const quantize_case& c) {
  if (c.kind == matrix_content::amaxes) return amaxes_of(c);
  if (c.kind == matrix_content::large_beside_inf) return large_beside_inf(c);
  const word_source next = words_from(c.content);
  strided_buffer in(c.from, c.in);
  if (c.kind == matrix_content::any_bits || c.kind == matrix_content::nan) {
    const std::uint64_t all_ones = c.kind == matrix_content::nan ? ~std::uint64_t{0} : 0;
    for (std::int64_t i = 0; i < c.in.span(); ++i) in.store(i, next() | all_ones);
    return in;
  }
  const bool varies = next() % 2 == 0;  // or ordinary numbers around 1 everywhere
  int exponent = 0;
  std::int64_t kind = 3;
  for (std::int64_t i = 0; i < c.in.span(); ++i) {
    if (i % 48 == 0 && varies) {  // stretches that are no tiles, so that tiles mix them
      kind = below(6, next);
      exponent = below(2, next) == 0 ? static_cast<int>(below(280, next)) - 150
                                     : static_cast<int>(below(20, next)) - 10;
    }
    in.store(i, draw_element(c, exponent, kind, next));
  }
  return in;
}

quantize_outputs outputs_of(const quantize_case& c, const call_site& site, std::size_t first) {
  const auto view = [&](std::size_t at, bool wanted) {
    return wanted ? site.views[first + at] : matrix_view{};
  };
  quantize_outputs outputs = {
      .codes = view(quantize_buffers::codes, c.wanted.codes),
      .scales = view(quantize_buffers::scales, c.wanted.scales),
      .codes_transposed = view(quantize_buffers::codes_transposed, c.wanted.codes_transposed),
      .scales_transposed = view(quantize_buffers::scales_transposed, c.wanted.scales_transposed),
      .tensor_scale = view(quantize_buffers::tensor_scale_written,
                           has_two_levels(c.options.scale) && c.wanted.scales)};
  if (c.wanted.statistics) {
    outputs.statistics = site.pointer<quantize_statistics>(quantize_buffers::statistics);
  }
  return outputs;
}

quantize_options options_of(const quantize_case& c, const call_site& site) {
  quantize_options options = c.options;
  if (c.inverse_scales) options.inverse_scales = site.views[quantize_buffers::inverse_scales];
  if (c.tensor_scale) options.tensor_scale = site.views[quantize_buffers::tensor_scale];
  if (c.skip) {
    options.skip_if_nonzero = site.pointer<std::uint32_t>(quantize_buffers::skip);
  }
  return options;
}

namespace {

void describe_shape(quantize_case& c, case_fields& fields) {
  fields.show("in", c.in, "codes", c.codes, "scales", c.scales, "codes_transposed",
              c.codes_transposed, "scales_transposed", c.scales_transposed);
  const auto resize = [&](std::int64_t rows, std::int64_t cols) {
    lay_out(c, rows, cols, [] { return std::uint64_t{1}; });
    c.in = dense_layout(rows, cols);
  };
  fields.sizes(c.in.rows, c.in.cols, resize);
  fields.show("plain", c.plain);
  if (!fields.change(!c.plain)) return;
  c.plain = true;
  resize(c.in.rows, c.in.cols);
}

void describe_outputs(quantize_case& c, case_fields& fields) {
  wanted_outputs& w = c.wanted;
  fields.show("wanted:", true, "codes", w.codes, "codes_transposed", w.codes_transposed);
  const bool both = w.codes && w.codes_transposed;
  if (fields.change(both)) w.codes_transposed = false;
  if (fields.change(both)) w.codes = false;
  fields.reset("scales", w.scales, false, "scales_transposed", w.scales_transposed, false,
               "statistics", w.statistics, false, "given inverse_scales", c.inverse_scales, false,
               "given tensor_scale", c.tensor_scale, false);
}

void describe_options(quantize_case& c, case_fields& fields) {
  quantize_options& o = c.options;
  const quantize_options plain;
  fields.show("from", c.from, "to", c.to, "tile rows", o.tile.rows, "columns", o.tile.cols);
  fields.reset("eps", o.eps, plain.eps, "upper bound", o.upper_bound, plain.upper_bound, "rounding",
               o.rounding, plain.rounding, "nan", o.nan, plain.nan, "overflow", o.overflow,
               plain.overflow, "nonfinite", o.nonfinite, plain.nonfinite, "scale overflow",
               o.scale_overflow, plain.scale_overflow, "scales of", c.scale_format,
               format_id::fp32);
  fields.show("rule", o.scale);
  const bool any_rule = c.scale_format == format_id::fp32 && !c.tensor_scale;
  if (fields.change(any_rule && o.scale != plain.scale)) o.scale = plain.scale;
  fields.reset(o.random);
}

}  // namespace

void describe(quantize_case& c, case_fields& fields) {
  describe_shape(c, fields);
  describe_options(c, fields);
  describe_outputs(c, fields);
  fields.reset("skip flag", c.skip, std::nullopt);
}

void describe(list_quantization& c, case_fields& fields) {
  fields.fewer(c.tensors);
  for (quantize_case& t : c.tensors) {
    fields.line();
    describe_shape(t, fields);
    describe_outputs(t, fields);
    fields.show("content", t.content);
  }
  if (c.tensors.empty()) return;
  fields.line();
  const quantize_case& first = c.tensors[0];
  describe_options(c.tensors[0], fields);  // one rule for all
  for (quantize_case& t : c.tensors) {
    t.options = first.options;
    t.scale_format = first.scale_format;
  }
}

operation_of<quantize_case> quantizations(matrix_sizes sizes) {
  return {[sizes](const word_source& next) { return draw_quantization(sizes, next); },
          memory_of_quantization, quantize_on};
}

operation_of<list_quantization> list_quantizations(matrix_sizes sizes) {
  return {[sizes](const word_source& next) { return draw_list(sizes, next); }, memory_of_list,
          quantize_list_on};
}

array_operation quantize_operation(matrix_sizes sizes) {
  return make_operation("quantize", quantizations(sizes));
}

std::vector<const recipe_preset*> presets_of_current_scales() {
  std::vector<const recipe_preset*> all;
  for (const recipe_preset& preset : recipe_presets) {
    if (preset.rules.source == scale_source::current) all.push_back(&preset);
  }
  return all;
}

array_operation recipe_operation(const recipe_preset& preset, matrix_sizes sizes) {
  operation_of<quantize_case> parts = quantizations();
  parts.draw = [preset, sizes](const word_source& next) {
    quantize_case c = draw_quantization(sizes, next);
    const quantize_options drawn = c.options;
    c.options = options_of(preset.rules);
    c.options.rounding = drawn.rounding;
    c.options.random = drawn.random;
    if (below(4, next) == 0) c.options.tile = column_tile(preset.rules);
    c.to = preset.rules.code_format;
    c.scale_format = preset.rules.scale_format;
    c.inverse_scales = false;
    c.tensor_scale = has_two_levels(c.options.scale) && below(3, next) == 0;
    if (below(8, next) == 0) c.kind = matrix_content::any_bits;
    const bool small = sizes == matrix_sizes::small;  // an oracle takes microseconds for an element
    const std::int64_t rows = small ? below(4, next) : c.in.rows;
    const tile_shape& tile = c.options.tile;
    lay_out(c, small && tile.rows > 1 ? tile.rows + rows - 1 : rows,
            small ? draw_size(tile.cols, next) : c.in.cols, next);
    return c;
  };
  return make_operation(std::string(preset.name), parts);
}

array_operation dequantize_operation() {
  const auto draw = [](const word_source& next) {
    quantize_case c = draw_quantize_case(next);
    if (below(3, next) == 0) {
      draw_two_levels(c, next);
      lay_out(c, c.in.rows, c.in.cols, next);
    }
    draw_large(c, next);
    return c;
  };
  return make_operation<quantize_case>("dequantize",
                                       {draw, memory_of_dequantization, dequantize_on});
}

array_operation long_quantize_lists() {
  std::vector<list_quantization> all;
  for (const std::size_t tensors : {std::size_t{0}, std::size_t{1}, std::size_t{3000}}) {
    quantize_case c{.from = format_id::bf16, .options = {.tile = {1, 32}}, .plain = true};
    lay_out(c, 1, 72, [] { return std::uint64_t{1}; });
    all.push_back({std::vector(tensors, c)});
    for (quantize_case& t : all.back().tensors) t.content = c.content++;
  }
  return listed_operation("quantize_list", list_quantizations(), std::move(all));
}

array_operation quantize_list_operation(matrix_sizes sizes) {
  return make_operation("quantize_list", list_quantizations(sizes), 512);
}

}  // namespace samebits::support
