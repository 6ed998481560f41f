// Codebooks: quantize_blocks(), and dequantize_blocks() of any codes and absmaxes.
#include <random>

#include "engine/cases/operations.hpp"
#include "engine/inputs/families.hpp"
#include "samebits/codebook.hpp"

namespace samebits::support {
namespace {

constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};
constexpr std::int64_t blocks[] = {1, 3, 7, 8, 32, 64, 100, 256, 4096};
constexpr std::size_t at_elements = 0, at_codes = 1, at_absmax = 2, at_absmax_codes = 3;

struct codebook_case {
  bool dequantizes = false;
  bool nested = false;  ///< double quantization
  codebook_options options = {};
  std::int64_t absmax_block = 256;
  float offset = 0;
  format_id format = format_id::fp32;
  array_layout elements = {};
  std::int64_t code_bytes_off = 0;  ///< misalignment of the codes
  int threads = 1;
  std::uint64_t content = 0;
};

void describe(codebook_case& c, case_fields& fields) {
  fields.show("dequantizes", c.dequantizes, "book", c.options.book, "steps", c.options.steps,
              "block", c.options.block, "absmax block", c.absmax_block, "offset", c.offset,
              "format", c.format);
  fields.matrices({{"elements", c.elements}});
  fields.reset("bytes before the codes", c.code_bytes_off, 0, "nested", c.nested, false);
}

codebook_case draw_codebook(const word_source& next) {
  codebook_case c;
  c.dequantizes = below(2, next) == 0;
  c.nested = c.dequantizes && below(2, next) == 0;
  c.options = {any_enumerator<codebook>(next), one_of(blocks, next),
               any_enumerator<codebook_steps>(next)};
  c.absmax_block = one_of(blocks, next);
  c.offset = below(4, next) == 0 ? 0.0F : static_cast<float>(below(1000, next)) / 128.0F;
  c.format = one_of(formats, next);
  // Tiles of the kernels have 4096 or 8192 elements.
  c.elements = below(16, next) == 0
                   ? dense_layout(1, 4096 * (1 + below(5, next)) - 2 + below(5, next))
                   : dense_layout(below(7, next), below(200, next));
  if (below(4, next) == 0) c.elements.misalignment = below(8, next);
  if (below(4, next) == 0) c.code_bytes_off = below(8, next);
  return c;
}

/// Numbers of every family, in most blocks within a few binades.
strided_buffer numbers(format_id format, const array_layout& layout, std::mt19937_64& engine) {
  strided_buffer m(format, layout);
  const word_source next = [&] { return engine(); };
  const int width = spec_of(format).storage_bits;
  const std::uint64_t kept = (std::uint64_t{0x807F} << 16 | 0xFFFF) >> (32 - width);
  std::uint64_t kind = 0;
  for (std::int64_t i = 0; i < layout.span(); ++i) {
    if (i % 32 == 0) kind = next() % 8;
    std::uint64_t code = next() >> (64 - width);
    if (kind == 0) code &= std::uint64_t{1} << (width - 1);
    if (kind > 1) code = (code & kept) | (std::uint64_t{0x3E} << (width - 8));
    if (kind == 1 || i % 61 == 0) code = draw_any_code(format, format_id::e4m3, next);
    m.store(i, code);
  }
  return m;
}

buffers memory_of_codebook(const codebook_case& c) {
  std::mt19937_64 engine(c.content);
  const std::int64_t count = c.elements.rows * c.elements.cols;
  const std::int64_t blocks_of_case = block_count(c.options, count);
  const auto bytes = [&](std::int64_t size, std::int64_t off) {
    array_layout layout = dense_layout(1, size);
    layout.misalignment = off;
    strided_buffer m(format_id::e8m0, layout);
    for (std::int64_t i = 0; i < size && c.dequantizes; ++i) m.store(i, engine() % 256);
    return m;
  };
  const std::int64_t absmaxes =
      c.nested ? block_count({.block = c.absmax_block}, blocks_of_case) : blocks_of_case;
  const array_layout of_absmax = dense_layout(1, absmaxes);
  const buffer_use given = c.dequantizes ? buffer_use::fixed : buffer_use::result;
  return {{"elements", c.dequantizes ? buffer_use::result : buffer_use::given,
           c.dequantizes ? strided_buffer(c.format, c.elements)
                         : numbers(c.format, c.elements, engine)},
          {"codes", given, bytes(codebook_bytes(c.options.book, count), c.code_bytes_off)},
          {"absmax", given,
           c.dequantizes ? numbers(format_id::fp32, of_absmax, engine)
                         : strided_buffer(format_id::fp32, of_absmax)},
          {"codes of absmax", given, bytes(c.nested ? blocks_of_case : 0, 0)}};
}

/// The memory of a buffer without gaps.
template <class T>
std::span<T> span_of(const call_site& site, std::size_t buffer) {
  return {site.pointer<T>(buffer), static_cast<std::size_t>(site.views[buffer].cols)};
}

returned_values codebook_on(const codebook_case& c, const call_site& site) {
  const executor where = site.target.where(c.threads);
  const matrix_view& elements = site.views[at_elements];
  const auto codes = span_of<std::uint8_t>(site, at_codes);
  const auto absmax = span_of<float>(site, at_absmax);
  site.target.enqueue([&] {
    if (!c.dequantizes) return quantize_blocks(elements, c.options, codes, absmax, where);
    if (!c.nested) return dequantize_blocks(codes, absmax, c.options, elements, where);
    const quantized_absmax quantized = {span_of<std::uint8_t>(site, at_absmax_codes), absmax,
                                        c.offset, c.absmax_block};
    dequantize_blocks(codes, quantized, c.options, elements, where);
  });
  return {};
}

}  // namespace

array_operation codebook_operation() {
  return make_operation(
      "codebooks", operation_of<codebook_case>{draw_codebook, memory_of_codebook, codebook_on});
}

}  // namespace samebits::support
