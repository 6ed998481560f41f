// Quantize cases: shapes, tiles, options, layouts, and what the matrix holds.
#include "support/quantize_cases.hpp"

#include <algorithm>
#include <bit>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/scalar.hpp"
#include "support/backends.hpp"
#include "support/case_generator.hpp"
#include "support/generators.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

std::int64_t below(std::int64_t limit, const word_source& next) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
}

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
  o.scale = static_cast<scale_rule>(below(enum_count<scale_rule>, next));
  if (below(3, next) == 0) o.eps = draw_bound(next);
  if (below(3, next) == 0) o.upper_bound = draw_bound(next);
  o.nonfinite = static_cast<nonfinite>(below(enum_count<nonfinite>, next));
  o.rounding = below(2, next) == 0 ? rounding::nearest_even : rounding::stochastic;
  if (below(2, next) == 0) o.overflow = static_cast<overflow>(below(enum_count<overflow>, next));
  o.nan = static_cast<nan_policy>(below(enum_count<nan_policy>, next));
  o.scale_overflow = static_cast<scale_overflow>(below(enum_count<scale_overflow>, next));
  o.random.seed = draw_number(next);
  o.random.stream = draw_number(next);
  o.random.offset = draw_number(next);
  if (below(2, next) == 0) o.random.pitch = draw_number(next);
  o.random.bits = 1 + static_cast<int>(below(32, next));
  return o;
}

/// A code of the source near 2^exponent, or a special one.
std::uint64_t draw_element(const quantize_case& c, int exponent, std::int64_t kind,
                           const word_source& next) {
  if (kind == 0)
    return draw_code(static_cast<code_family>(below(code_family_count, next)), c.from, c.to, next);
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

}  // namespace

void lay_out(quantize_case& c, std::int64_t rows, std::int64_t cols, const word_source& next) {
  const matrix_shape scales = scales_shape(rows, cols, c.options.tile);
  const auto laid = [&](std::int64_t r, std::int64_t k, array_side side) {
    return c.plain ? array_layout{r, k, k, 1, 0} : draw_layout(r, k, side, next);
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
  c.to = below(2, next) == 0 ? format_id::e4m3 : format_id::e5m2;
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

std::vector<quantize_case> simpler_shapes(const quantize_case& c) {
  std::vector<quantize_case> simpler;
  const auto resize = [&](std::int64_t rows, std::int64_t cols, bool plain) {
    quantize_case other = c;
    other.plain = plain;
    const word_source ones = [] { return std::uint64_t{1}; };
    lay_out(other, rows, cols, ones);
    other.in = {rows, cols, cols, 1, 0};
    simpler.push_back(std::move(other));
  };
  const auto [rows, cols] = matrix_shape{c.in.rows, c.in.cols};
  if (rows > 1) resize(rows / 2, cols, c.plain);
  if (cols > 1) resize(rows, cols / 2, c.plain);
  if (rows > 0) resize(rows - 1, cols, c.plain);
  if (cols > 8) resize(rows, cols - 8, c.plain);  // rows stay aligned
  if (cols > 0) resize(rows, cols - 1, c.plain);
  if (!c.plain) resize(rows, cols, true);
  if (c.threads != 1) {
    simpler.push_back(c);
    simpler.back().threads = 1;
  }
  return simpler;
}

std::vector<quantize_case> simpler_options(const quantize_case& c) {
  std::vector<quantize_case> simpler;
  const quantize_options plain;
  const auto reset = [&](auto quantize_options::*option) {
    if (c.options.*option == plain.*option) return;
    simpler.push_back(c);
    simpler.back().options.*option = plain.*option;
  };
  if (c.scale_format != format_id::fp32) {
    simpler.push_back(c);
    simpler.back().scale_format = format_id::fp32;
  }
  reset(&quantize_options::eps);
  reset(&quantize_options::upper_bound);
  reset(&quantize_options::rounding);
  reset(&quantize_options::nan);
  reset(&quantize_options::overflow);
  reset(&quantize_options::nonfinite);
  reset(&quantize_options::scale_overflow);
  if (c.scale_format == format_id::fp32) reset(&quantize_options::scale);
  const auto reset_random = [&](auto random_stream::*part) {
    if (c.options.random.*part == plain.random.*part) return;
    simpler.push_back(c);
    simpler.back().options.random.*part = plain.random.*part;
  };
  reset_random(&random_stream::seed);
  reset_random(&random_stream::stream);
  reset_random(&random_stream::offset);
  reset_random(&random_stream::pitch);
  return simpler;
}

rc::Gen<quantize_case> quantize_cases() {
  return case_generator<quantize_case>(draw_quantize_case, [](const quantize_case& c) {
    std::vector<quantize_case> simpler = simpler_shapes(c);
    for (quantize_case& other : simpler_options(c)) simpler.push_back(std::move(other));
    return simpler;
  });
}

strided_buffer matrix_of(const quantize_case& c) {
  std::mt19937_64 engine(c.content);
  const word_source next = [&engine] { return engine(); };
  strided_buffer in(c.from, c.in);
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

quantize_result::quantize_result(const quantize_case& c)
    : codes(c.to, c.codes),
      scales(c.scale_format, c.scales),
      codes_transposed(c.to, c.codes_transposed),
      scales_transposed(c.scale_format, c.scales_transposed) {}

quantize_outputs quantize_result::outputs() {
  return {codes.view(), scales.view(), codes_transposed.view(), scales_transposed.view(),
          &statistics};
}

executor executor_of(const quantize_case& c) {
  static const std::vector<std::string> backends = [] {
    std::vector<std::string> able;
    for (const std::string& name : supported_backends()) {
      try {
        static_cast<void>(quantize_workspace({}, {}, {}, {name, 1, nullptr}));
        able.push_back(name);
      } catch (const unsupported&) {
      }
    }
    return able;
  }();
  return {backends[c.content % backends.size()], c.threads, nullptr};
}

quantize_result quantized(const quantize_case& c, strided_buffer& in, const executor& where) {
  quantize_result result(c);
  quantize(in.view(), result.outputs(), c.options, where);
  return result;
}

std::ostream& operator<<(std::ostream& out, const quantize_case& c) {
  const quantize_options& o = c.options;
  const auto show = [&](const char* which, const array_layout& layout) {
    out << which << " [" << layout.rows << ", " << layout.cols << "] strides " << layout.row_stride
        << ", " << layout.col_stride << ", " << layout.misalignment << " bytes off; ";
  };
  out << name(c.from) << " to " << name(c.to) << ", tile " << o.tile.rows << " x " << o.tile.cols
      << ", " << name(o.scale) << ", " << name(o.nonfinite) << ", " << name(o.scale_overflow)
      << ", eps " << o.eps << ", upper " << o.upper_bound << ", "
      << text_of({o.rounding, o.overflow, o.nan}) << "; ";
  show("in", c.in);
  show("codes", c.codes);
  out << name(c.scale_format) << " ";
  show("scales", c.scales);
  show("codes_transposed", c.codes_transposed);
  show("scales_transposed", c.scales_transposed);
  out << "random seed " << o.random.seed << " stream " << o.random.stream << " offset "
      << o.random.offset;
  if (o.random.pitch) out << " pitch " << *o.random.pitch;
  return out << " bits " << o.random.bits << "; " << c.threads << " threads; content " << c.content;
}

}  // namespace samebits::support
