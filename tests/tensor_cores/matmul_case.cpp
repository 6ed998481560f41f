// Draws matrix products.
#include "tensor_cores/matmul_case.hpp"

#include <array>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"

namespace samebits::support {
namespace {

constexpr std::array any_formats = {format_id::fp32,     format_id::tf32,    format_id::fp16,
                                    format_id::bf16,     format_id::e4m3,    format_id::e5m2,
                                    format_id::e3m2,     format_id::e2m3,    format_id::e2m1,
                                    format_id::e4m3fnuz, format_id::e5m2fnuz};

/// A code of 2^exponent * (1 + mantissa), random mantissa and sign.
std::uint64_t code_of(format_id format, int exponent, word_stream& words) {
  const auto mantissa = static_cast<std::uint32_t>(words.next()) & 0x807FFFFFu;
  const auto bits = mantissa | static_cast<std::uint32_t>(exponent + 127) << 23;
  return numerics::encode<std::uint32_t>(spec_of(format),
                                         {rounding::toward_zero, overflow::saturate}, bits, 0)
      .code;
}

}  // namespace

matmul_case::matmul_case(std::uint64_t seed, const matmul_sizes& sizes, random_kinds kinds)
    : seed_(seed), words_(seed) {
  const auto size = [&](int maximum) {
    return words_.below(30) == 0 ? 0 : static_cast<std::int64_t>(1 + words_.below(maximum));
  };
  const std::int64_t m = size(sizes.max_rows);
  const std::int64_t n = size(sizes.max_cols);
  const std::int64_t k = size(sizes.max_depth);
  draw_sum(kinds);
  a_layout_ = layout(m, k, array_side::read);
  b_layout_ = layout(k, n, array_side::read);
  d_layout_ = layout(m, n, array_side::written);
  constexpr std::array results = {format_id::fp32, format_id::fp32, format_id::bf16,
                                  format_id::fp16, format_id::fp64};
  const bool exact = sum_.kind == accumulator_kind::exact;
  d_format_ = results[static_cast<std::size_t>(words_.below(exact ? 5 : 4))];
  const int mix = words_.below(8);
  add_buffer(a_format_, a_layout_, mix);
  add_buffer(b_format_, b_layout_, mix);
  draw_scales();
  draw_c();
  make_views();
}

void matmul_case::draw_sum(random_kinds kinds) {
  const int kind =
      kinds == random_kinds::tensor_cores ? 3 : words_.below(enum_count<accumulator_kind>);
  if (kind < 3) {
    const auto draw = [&] {
      return any_formats[static_cast<std::size_t>(
          words_.below(static_cast<int>(any_formats.size())))];
    };
    a_format_ = draw();
    b_format_ = words_.below(2) == 0 ? a_format_ : draw();
    const auto order = static_cast<fp32_order>(words_.below(enum_count<fp32_order>));
    sum_ = kind == 0   ? accumulator::exact()
           : kind == 1 ? accumulator::ieee_fp32(order)
                       : accumulator::fp32_per_128();
    return;
  }
  static const std::vector<tensor_instruction> all = all_tensor_instructions();
  const auto& i = all[static_cast<std::size_t>(words_.below(static_cast<int>(all.size())))];
  a_format_ = i.a;
  b_format_ = i.b;
  products_ = i.products;
  const std::array promotions = {0, 0, 128, 128, i.products, 3 * i.products};
  const int promotion = promotions[static_cast<std::size_t>(words_.below(6))];
  sum_ = accumulator::tensor_core(i.row.unit, promotion, i.result,
                                  i.products == i.row.products ? 0 : i.products);
}

array_layout matmul_case::layout(std::int64_t rows, std::int64_t cols, array_side side) {
  return draw_layout(rows, cols, side, [this] { return words_.next(); });
}

std::uint64_t matmul_case::draw_code(format_id format, int mix) {
  const auto any = [&] {
    const int bits = spec_of(format).storage_bits;
    return words_.next() >> (64 - bits);
  };
  switch (mix) {
    case 0: return any();  // NaN and Inf everywhere
    case 1: return words_.below(200) == 0 ? any() : code_of(format, words_.below(7) - 3, words_);
    case 2: return code_of(format, words_.below(61) - 30, words_);  // far apart
    case 3: return words_.below(2) == 0 ? 0 : code_of(format, words_.below(9) - 4, words_);
    case 4: return code_of(format, words_.below(240) - 120, words_);
    default: return code_of(format, words_.below(7) - 3, words_);
  }
}

void matmul_case::add_buffer(format_id format, const array_layout& layout, int mix) {
  strided_buffer buffer(format, layout);
  for (std::int64_t r = 0; r < layout.rows; ++r) {
    for (std::int64_t c = 0; c < layout.cols; ++c) {
      buffer.store(r * layout.row_stride + c * layout.col_stride, draw_code(format, mix));
    }
  }
  buffers_.push_back(std::move(buffer));
}

void matmul_case::draw_scales() {
  const int order = words_.below(enum_count<scale_order> + 1);
  if (order < enum_count<scale_order>) options_.scale_order = static_cast<scale_order>(order);
  const bool by_blocks = sum_.kind == accumulator_kind::exact ||
                         sum_.kind == accumulator_kind::fp32_per_128 ||
                         (sum_.kind == accumulator_kind::tensor_core && sum_.promotion == 128);
  constexpr std::array tiles = {tile_shape{0, 0}, tile_shape{1, 0}, tile_shape{1, 128},
                                tile_shape{128, 128}};
  const auto draw = [&](operand_scales& s, const array_layout& of, bool turned) {
    if (words_.below(2) == 0) return;
    const tile_shape tile = tiles[static_cast<std::size_t>(words_.below(by_blocks ? 4 : 2))];
    s.tile = turned ? tile_shape{tile.cols, tile.rows} : tile;
    const matrix_shape shape = scales_shape(of.rows, of.cols, s.tile);
    const format_id format = words_.below(4) == 0 ? format_id::e8m0 : format_id::fp32;
    const array_layout at = layout(shape.rows, shape.cols, array_side::read);
    strided_buffer buffer(format, at);
    const int mix = words_.below(12);
    for (std::int64_t r = 0; r < at.rows; ++r) {
      for (std::int64_t c = 0; c < at.cols; ++c) {
        const std::uint64_t code = format == format_id::e8m0
                                       ? static_cast<std::uint64_t>(120 + words_.below(15))
                                       : draw_code(format, mix);
        buffer.store(r * at.row_stride + c * at.col_stride, code);
      }
    }
    buffers_.push_back(std::move(buffer));
    s.values.format = format;
    s.values.data = this;  // replaced by make_views()
  };
  draw(options_.a_scales, a_layout_, false);
  draw(options_.b_scales, b_layout_, true);
}

void matmul_case::draw_c() {
  if (words_.below(3) != 0) return;
  const bool scaled =
      options_.a_scales.values.data != nullptr || options_.b_scales.values.data != nullptr;
  constexpr std::array formats = {format_id::fp32, format_id::fp16, format_id::bf16};
  options_.c.format = formats[static_cast<std::size_t>(words_.below(3))];
  if (!scaled && words_.below(2) == 0) {
    options_.c_enters = addend::first;
    const bool of_unit = sum_.kind == accumulator_kind::tensor_core && sum_.promotion == 0;
    if (sum_.kind != accumulator_kind::exact) {
      options_.c.format = of_unit ? sum_.result : format_id::fp32;
    }
  }
  options_.c.data = this;
  const int mix = words_.below(8);
  add_buffer(options_.c.format, layout(rows(), cols(), array_side::read), mix);
}

void matmul_case::make_views() {
  std::size_t next = 2;
  for (const_matrix_view* v : {&options_.a_scales.values, &options_.b_scales.values, &options_.c}) {
    if (v->data != nullptr) *v = buffers_[next++].view();
  }
}

strided_buffer matmul_case::run(const executor& where) const {
  strided_buffer d(d_format_, d_layout_);
  auto buffers = buffers_;  // views are of what can be written
  matmul(buffers[0].view(), buffers[1].view(), d.view(), sum_, options_, where);
  return d;
}

std::uint32_t matmul_case::scale(const operand_scales& s, std::int64_t r, std::int64_t c) const {
  const const_matrix_view& v = s.values;
  if (v.data == nullptr) return 0x3F800000;
  const std::int64_t row = s.tile.rows == 0 ? 0 : r / s.tile.rows;
  const std::int64_t col = s.tile.cols == 0 ? 0 : c / s.tile.cols;
  const int bytes = storage_bytes(v.format);
  std::uint32_t code = 0;
  std::memcpy(
      &code,
      static_cast<const std::byte*>(v.data) + (row * v.row_stride + col * v.col_stride) * bytes,
      static_cast<std::size_t>(bytes));
  return numerics::decode<std::uint32_t>(spec_of(v.format), code);
}

std::uint32_t matmul_case::a_scale(std::int64_t r, std::int64_t c) const {
  return scale(options_.a_scales, r, c);
}
std::uint32_t matmul_case::b_scale(std::int64_t r, std::int64_t c) const {
  return scale(options_.b_scales, r, c);
}
std::uint32_t matmul_case::c_code(std::int64_t r, std::int64_t c) const {
  return static_cast<std::uint32_t>(buffers_.back().at(r, c));
}

std::string matmul_case::text() const {
  const auto text_of = [](const auto& x) { return std::string(name(x)); };
  std::string text = "case " + std::to_string(seed_) + ": [" + std::to_string(rows()) + ", " +
                     std::to_string(depth()) + "] x [" + std::to_string(depth()) + ", " +
                     std::to_string(cols()) + "], " + text_of(a_format_) + " x " +
                     text_of(b_format_) + " into " + text_of(d_format_) + " by " +
                     text_of(sum_.kind);
  if (sum_.kind == accumulator_kind::ieee_fp32) text += ", " + text_of(sum_.order);
  if (sum_.kind == accumulator_kind::tensor_core) {
    text += ", " + text_of(sum_.unit) + " into " + text_of(sum_.result) + ", promotion " +
            std::to_string(sum_.promotion) + ", " + std::to_string(products_) + " products";
  }
  if (options_.a_scales.values.data != nullptr) text += ", A scaled";
  if (options_.b_scales.values.data != nullptr) text += ", B scaled";
  if (options_.c.data != nullptr) text += ", C";
  return text;
}

}  // namespace samebits::support
