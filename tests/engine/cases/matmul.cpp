// Matrix products.
#include "engine/cases/matmul.hpp"

#include <array>

#include "numerics/bits/encode.hpp"
#include "tensor_cores/tensor_cases.hpp"

namespace samebits::support {
namespace {

constexpr std::array any_formats = {format_id::fp32,     format_id::tf32,    format_id::fp16,
                                    format_id::bf16,     format_id::e4m3,    format_id::e5m2,
                                    format_id::e3m2,     format_id::e2m3,    format_id::e2m1,
                                    format_id::e4m3fnuz, format_id::e5m2fnuz};

bool is_of_tensor_core(const matmul_case& c) { return c.sum.kind == accumulator_kind::tensor_core; }

void draw_sum(matmul_case& c, random_kinds kinds, const word_source& next) {
  const auto kind = kinds == random_kinds::tensor_cores ? accumulator_kind::tensor_core
                                                        : any_enumerator<accumulator_kind>(next);
  if (kind != accumulator_kind::tensor_core) {
    c.a_format = one_of(any_formats, next);
    c.b_format = below(2, next) == 0 ? c.a_format : one_of(any_formats, next);
    const auto order = any_enumerator<fp32_order>(next);
    c.sum = kind == accumulator_kind::exact       ? accumulator::exact()
            : kind == accumulator_kind::ieee_fp32 ? accumulator::ieee_fp32(order)
                                                  : accumulator::fp32_per_128();
    return;
  }
  static const std::vector<tensor_instruction> all = all_tensor_instructions();
  const tensor_instruction i = one_of(all, next);
  c.a_format = i.a;
  c.b_format = i.b;
  c.products = i.products;
  const std::array promotions = {0, 0, 128, 128, i.products, 3 * i.products};
  c.sum = accumulator::tensor_core(i.row.unit, one_of(promotions, next), i.result,
                                   i.products == i.row.products ? 0 : i.products);
}

bool is_in_slices(const matmul_case& c) {
  return c.sum.slices != 1 || c.sum.residue_tile != 0 ||
         c.sum.slice_rounding != slice_rounding::none || c.sum.fp32_as_tf32 ||
         (!is_of_tensor_core(c) && c.sum.promotion != 0);
}

/// Divides K into slices, in a third of the cases that allow it; fp32 in place of tf32 in half.
void draw_slices(matmul_case& c, const word_source& next) {
  const bool unit = is_of_tensor_core(c);
  if (unit && c.a_format == format_id::tf32 && below(2, next) == 0) {
    c.a_format = c.b_format = format_id::fp32;
    c.sum.fp32_as_tf32 = true;
  }
  const bool takes_slices = unit || c.sum.kind == accumulator_kind::ieee_fp32;
  if (!takes_slices || c.sum.result != format_id::fp32 || below(3, next) != 0) return;
  constexpr std::array tiles = {1, 3, 4, 8, 16, 32, 64};
  if (!unit && below(2, next) == 0) c.sum.promotion = one_of(tiles, next);
  c.sum.slices = 1 + below(7, next);
  c.sum.slice_tile = one_of(tiles, next);
  c.sum.slice_sum = any_enumerator<slice_sum>(next);
  c.sum.slice_rounding = any_enumerator<slice_rounding>(next);
  if (c.sum.slice_rounding == slice_rounding::running) c.sum.slice_sum = slice_sum::ascending;
  if (unit && c.sum.promotion != 0) return;
  c.sum.slice_order = any_enumerator<slice_order>(next);
  if (unit && c.sum.slice_order == slice_order::contiguous) {
    c.sum.residue_tile = below(3, next) == 0 ? 0 : one_of(tiles, next);
  }
}

scales_of_case draw_scales(const matmul_case& c, const array_layout& of, bool turned,
                           const word_source& next) {
  scales_of_case s;
  s.given = below(2, next) == 0;
  if (!s.given) return s;
  const bool by_blocks = c.sum.kind == accumulator_kind::exact ||
                         c.sum.kind == accumulator_kind::fp32_per_128 ||
                         (is_of_tensor_core(c) && c.sum.promotion == 128 && !is_in_slices(c));
  constexpr std::array tiles = {tile_shape{0, 0}, tile_shape{1, 0}, tile_shape{1, 128},
                                tile_shape{128, 128}};
  tile_shape tile = tiles[static_cast<std::size_t>(below(by_blocks ? 4 : 2, next))];
  const bool exact = c.sum.kind == accumulator_kind::exact;
  if (exact && tile.cols != 0 && below(4, next) != 0) {
    tile.cols = std::int64_t{16} << below(5, next);
    if (tile.rows != 1) tile.rows = tile.cols;
  }
  s.tile = turned ? tile_shape{tile.cols, tile.rows} : tile;
  const matrix_shape shape = scales_shape(of.rows, of.cols, s.tile);
  if (below(4, next) == 0) s.format = format_id::e8m0;
  if (exact && below(4, next) == 0) s.format = format_id::e4m3;
  s.layout = draw_layout(shape.rows, shape.cols, array_side::read, next);
  s.mix = static_cast<int>(below(12, next));
  return s;
}

void draw_c(matmul_case& c, const word_source& next) {
  c.has_c = below(3, next) == 0;
  if (!c.has_c) return;
  constexpr std::array formats = {format_id::fp32, format_id::fp16, format_id::bf16};
  c.c_format = one_of(formats, next);
  const bool after_first = is_in_slices(c) && c.sum.slice_sum == slice_sum::ascending;
  if (!c.a_scales.given && !c.b_scales.given && after_first && below(2, next) == 0) {
    c.c_enters = addend::after_first_slice;
  } else if (!c.a_scales.given && !c.b_scales.given && below(2, next) == 0 &&
             (is_of_tensor_core(c) || c.sum.promotion == 0)) {
    c.c_enters = addend::first;
    if (c.sum.kind != accumulator_kind::exact) {
      c.c_format = is_of_tensor_core(c) && c.sum.promotion == 0 ? c.sum.result : format_id::fp32;
    }
  }
  c.c_mix = static_cast<int>(below(8, next));
  c.c = draw_layout(c.d.rows, c.d.cols, array_side::read, next);
}

matmul_case draw_case(const matmul_sizes& sizes, random_kinds kinds, const word_source& next) {
  matmul_case c;
  const auto size = [&](int maximum) {
    return below(30, next) == 0 ? 0 : 1 + below(maximum, next);
  };
  const std::int64_t m = size(sizes.max_rows);
  const std::int64_t n = size(sizes.max_cols);
  const std::int64_t k = size(sizes.max_depth);
  draw_sum(c, kinds, next);
  draw_slices(c, next);
  c.a = draw_layout(m, k, array_side::read, next);
  c.b = draw_layout(k, n, array_side::read, next);
  c.d = draw_layout(m, n, array_side::written, next);
  constexpr std::array results = {format_id::fp32, format_id::fp32, format_id::bf16,
                                  format_id::fp16, format_id::fp64};
  const bool exact = c.sum.kind == accumulator_kind::exact;
  c.d_format = results[static_cast<std::size_t>(below(exact ? 5 : 4, next))];
  c.mix = static_cast<int>(below(8, next));
  const auto order = below(enum_count<scale_order> + 1, next);
  if (order < enum_count<scale_order>) c.scale_order = static_cast<scale_order>(order);
  c.a_scales = draw_scales(c, c.a, false, next);
  c.b_scales = draw_scales(c, c.b, true, next);
  draw_c(c, next);
  return c;
}

/// A code of 2^exponent * (1 + mantissa), random mantissa and sign.
std::uint64_t code_of(format_id format, std::int64_t exponent, const word_source& next) {
  const auto mantissa = static_cast<std::uint32_t>(next()) & 0x807FFFFFu;
  const auto bits = mantissa | static_cast<std::uint32_t>(exponent + 127) << 23;
  return numerics::encode<std::uint32_t>(spec_of(format),
                                         {rounding::toward_zero, overflow::saturate}, bits, 0)
      .code;
}

std::uint64_t draw_element(format_id format, int mix, const word_source& next) {
  const auto any = [&] { return next() >> (64 - spec_of(format).storage_bits); };
  switch (mix) {
    case 0: return any();  // NaN and Inf everywhere
    case 1: return below(200, next) == 0 ? any() : code_of(format, below(7, next) - 3, next);
    case 2: return code_of(format, below(61, next) - 30, next);  // far apart
    case 3: return below(2, next) == 0 ? 0 : code_of(format, below(9, next) - 4, next);
    case 4: return code_of(format, below(240, next) - 120, next);
    default: return code_of(format, below(7, next) - 3, next);
  }
}

buffers memory_of_product(const matmul_case& c) {
  const word_source next = words_from(c.content);
  buffers all;
  const auto add = [&](const char* name, bool given, format_id format, const array_layout& layout,
                       int mix) {
    strided_buffer buffer(format, given ? layout : array_layout{});
    for (std::int64_t i = 0; given && i < layout.rows * layout.cols; ++i) {
      const bool power = format == format_id::e8m0;
      buffer.store(layout.at(i), power ? static_cast<std::uint64_t>(120 + below(15, next))
                                       : draw_element(format, mix, next));
    }
    all.push_back({name, buffer_use::given, std::move(buffer)});
  };
  add("a", true, c.a_format, c.a, c.mix);
  add("b", true, c.b_format, c.b, c.mix);
  add("a_scales", c.a_scales.given, c.a_scales.format, c.a_scales.layout, c.a_scales.mix);
  add("b_scales", c.b_scales.given, c.b_scales.format, c.b_scales.layout, c.b_scales.mix);
  add("c", c.has_c, c.c_format, c.c, c.c_mix);
  all.push_back({"d", buffer_use::result, strided_buffer(c.d_format, c.d)});
  return all;
}

returned_values multiply(const matmul_case& c, const call_site& site) {
  using namespace matmul_buffers;
  matmul_options options{.scale_order = c.scale_order, .c_enters = c.c_enters};
  if (c.a_scales.given) options.a_scales = {site.views[a_scales], c.a_scales.tile};
  if (c.b_scales.given) options.b_scales = {site.views[b_scales], c.b_scales.tile};
  if (c.has_c) options.c = site.views[matmul_buffers::c];
  matmul(site.views[a], site.views[b], site.views[d], c.sum, options, site.target.where(c.threads));
  return {};
}

}  // namespace

void describe(matmul_case& c, case_fields& fields) {
  const accumulator& sum = c.sum;
  fields.show("a", c.a_format, "b", c.b_format, "d", c.d_format, "sum", sum.kind, "order",
              sum.order, "unit", sum.unit, "result", sum.result, "promotion", sum.promotion,
              "products", c.products, "slices", sum.slices, "slice order", sum.slice_order, "tile",
              sum.slice_tile, "slice sum", sum.slice_sum, "slice rounding", sum.slice_rounding,
              "residue tile", sum.residue_tile, "fp32 as tf32", sum.fp32_as_tf32, "scale order",
              c.scale_order, "c", c.c_format, "c enters", c.c_enters, "content of kind", c.mix);
  const auto resize = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    c.a.resize(m, k);
    c.b.resize(k, n);
    c.d.resize(m, n);
    c.c.resize(m, n);
    for (const auto& [scales, of] : {std::pair{&c.a_scales, &c.a}, std::pair{&c.b_scales, &c.b}}) {
      const matrix_shape shape = scales_shape(of->rows, of->cols, scales->tile);
      scales->layout.resize(shape.rows, shape.cols);
    }
  };
  const std::int64_t m = c.d.rows, n = c.d.cols, k = c.a.cols;
  fields.sizes(m, n, [&](std::int64_t rows, std::int64_t cols) { resize(rows, cols, k); });
  fields.sizes(0, k, [&](std::int64_t, std::int64_t depth) { resize(m, n, depth); });
  fields.reset("has c", c.has_c, false);
  for (scales_of_case* const s : {&c.a_scales, &c.b_scales}) {
    fields.line();
    fields.reset("scales", s->given, false);
    fields.show("format", s->format, "layout", s->layout, "rows of a tile", s->tile.rows, "columns",
                s->tile.cols);
  }
  fields.line();
  fields.reset("a", c.a, dense_layout(m, k), "b", c.b, dense_layout(k, n), "c", c.c,
               dense_layout(m, n), "d", c.d, dense_layout(m, n));
  if (fields.change(c.c_enters != addend::after_first_slice && sum.slices != 1)) c.sum.slices = 1;
}

array_operation matmul_operation(const matmul_sizes& sizes, random_kinds kinds) {
  return make_operation<matmul_case>(
      "matmul",
      {[sizes, kinds](const word_source& next) { return draw_case(sizes, kinds, next); },
       memory_of_product, multiply},
      256);
}

}  // namespace samebits::support
