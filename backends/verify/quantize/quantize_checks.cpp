// The checks of quantization and dequantization.
#include <algorithm>
#include <array>
#include <bit>

#include "backends/verify/checks.hpp"
#include "backends/verify/quantize/quantization.hpp"
#include "samebits/scalar.hpp"

namespace samebits::backends::verification {
namespace {

using enum format_id;

constexpr std::array sources{fp32, fp16, bf16};
constexpr std::array targets{e4m3, e5m2};
constexpr std::array shapes{matrix_shape{1, 2100}, matrix_shape{33, 290}, matrix_shape{19, 531},
                            matrix_shape{130, 270}};
constexpr std::array bit_counts{8, 16, 32, 13};

/// Element i of a random matrix, as binary32 bits. Elements come in spans of 211, which is shorter
/// than some tiles and longer than others. Most spans have ordinary magnitudes near one exponent.
/// Other spans are zeros, have arbitrary bits, or contain NaN and Inf.
std::uint32_t matrix_bits(std::uint64_t sequence, std::uint64_t i) {
  constexpr std::uint64_t length = 211;
  // Offset of the numbers used for whole spans.
  constexpr std::uint64_t apart = std::uint64_t{1} << 40;
  const std::uint64_t of_all = random_pattern(sequence, apart + i / length);
  const std::uint64_t r = random_pattern(sequence, i);
  const auto any = static_cast<std::uint32_t>(r);
  const std::uint32_t sign = any & 0x80000000u;
  switch (of_all % 8) {
    case 0: return sign;
    case 1: return any;
    case 2:
      if (r >> 60 == 0) return sign | 0x7F800000u | ((r >> 59 & 1) != 0 ? any & 0x7FFFFFu : 0);
      break;
    default: break;
  }
  const auto top = static_cast<int>(of_all % 8 == 3 ? (of_all >> 8) % 255  // any exponent
                                                    : 100 + (of_all >> 8) % 54);
  const int below = std::countr_zero((r >> 32) | std::uint64_t{1} << 24);
  return sign | static_cast<std::uint32_t>(std::max(0, top - below)) << 23 | (any & 0x7FFFFFu);
}

code_buffer matrix_of(format_id from, std::uint64_t sequence, std::uint64_t count, int threads) {
  return codes_by(from, count, threads, [&](std::uint64_t i) {
    return convert_code(fp32, from, matrix_bits(sequence, i)).code;
  });
}

heading heading_of(const comparer& backends, std::string how) {
  return make_heading(backends, std::move(how), "", "quantize ");
}

/// Random options number `draw`: policies, bounds and random bits.
quantization random_quantization(std::uint64_t draw, format_id to, int tile, scale_rule rule,
                                 rounding mode) {
  const std::uint64_t r = random_pattern(4, 3 * draw);
  quantization q{};
  q.to = to;
  q.tile = tile;
  q.scale = {rule, static_cast<nonfinite>(r % enum_count<nonfinite>)};
  if ((r >> 8) % 4 == 0) q.scale.eps = 0x38D1B717;           // 1e-4
  if ((r >> 12) % 8 == 0) q.scale.upper_bound = 0x3F000000;  // 0.5
  q.cast = {mode, overflow::saturate, nan_policy::canonical};
  if ((r >> 16) % 4 == 0) q.cast.overflow = static_cast<overflow>((r >> 20) % enum_count<overflow>);
  if ((r >> 24) % 4 == 0) q.cast.nan = static_cast<nan_policy>((r >> 28) % enum_count<nan_policy>);
  q.random = {random_pattern(4, 3 * draw + 1), random_pattern(4, 3 * draw + 2), r, std::nullopt,
              bit_counts[(r >> 32) % bit_counts.size()]};
  if ((r >> 36) % 4 == 3) q.random.offset |= ~std::uint64_t{0} << 12;  // just below 2^64
  return q;
}

/// Makes dense placements for all outputs, or only for the row-wise outputs.
void place_dense(quantization& q, const matrix_shape& shape, bool transposed) {
  const auto& tile = all_tiles()[static_cast<std::size_t>(q.tile)];
  const matrix_shape s = scales_shape(shape.rows, shape.cols, tile);
  q.in = q.out[codes] = placement::dense(shape.rows, shape.cols);
  q.out[scales] = placement::dense(s.rows, s.cols);
  q.out[codes_transposed] = q.out[scales_transposed] = {};
  if (!transposed) return;
  q.out[codes_transposed] = placement::dense(shape.cols, shape.rows);
  q.out[scales_transposed] = placement::dense(s.cols, s.rows);
}

void check_tiles(comparer& backends, const effort& much, const done_function& done) {
  heading nearest = heading_of(backends, std::string(name(rounding::nearest_even)));
  heading stochastic = heading_of(backends, std::string(name(rounding::stochastic)));
  heading both = heading_of(backends, "row-wise and transposed in one call");
  std::uint64_t draw = 0;
  std::uint64_t combination = 0;
  for (std::uint64_t round = 0; round < much.quantize_rounds; ++round) {
    for (const format_id from : sources) {
      const code_buffer input =
          matrix_of(from, 5000 + draw, std::uint64_t{130} * 270, backends.threads());
      backends.set_input(input);
      for (const format_id to : targets) {
        for (int tile = 0; tile < tile_count; ++tile) {
          // Every third scale rule; the next tile, formats and round use other rules.
          const int first = static_cast<int>((combination + combination / tile_count) % 3);
          ++combination;
          for (int rule = first; rule < one_level_scale_rules; rule += 3) {
            for (const rounding mode : {rounding::nearest_even, rounding::stochastic}) {
              quantization q =
                  random_quantization(draw, to, tile, static_cast<scale_rule>(rule), mode);
              const std::uint64_t r = random_pattern(6, draw++);
              const bool transposed = (r >> 8) % 3 == 0;
              place_dense(q, shapes[r % shapes.size()], transposed);
              backends.compare(call_of(q, from), transposed ? both.per_backend
                                                 : mode == rounding::nearest_even
                                                     ? nearest.per_backend
                                                     : stochastic.per_backend);
            }
          }
        }
      }
    }
  }
  for (const heading* h : {&nearest, &stochastic, &both}) done(*h);
}

/// Layouts with contiguous rows or columns, with and without gaps, at aligned and odd addresses.
std::vector<placement> layouts(std::int64_t rows, std::int64_t cols) {
  return {{rows, cols, cols, 1, 0},      {rows, cols, cols + 5, 1, 1},
          {rows, cols, cols + 64, 1, 7}, {rows, cols, 3 * cols, 3, 0},
          {rows, cols, 1, rows, 0},      {rows, cols, 2, 2 * rows + 1, 3}};
}

void check_layouts(comparer& backends, const done_function& done) {
  constexpr std::int64_t rows = 19;
  constexpr std::int64_t cols = 83;
  heading h = heading_of(backends, "unaligned, strided and transposed views");
  std::vector<placement> readable = layouts(rows, cols);
  readable.insert(readable.end(), {{rows, cols, 0, 1, 0}, {rows, cols, 1, 0, 0}});
  std::uint64_t draw = 20000;
  for (const format_id from : sources) {
    const code_buffer input = matrix_of(from, draw, 8192, backends.threads());
    backends.set_input(input);
    for (int tile = 0; tile < 6; ++tile) {  // tiles of 16 and of the whole extents
      const auto& shape = all_tiles()[static_cast<std::size_t>(tile)];
      const matrix_shape s = scales_shape(rows, cols, shape);
      for (const placement& in : readable) {
        for (const placement& out : layouts(rows, cols)) {
          const std::uint64_t r = random_pattern(6, draw);
          quantization q =
              random_quantization(draw++, targets[r % 2], tile,
                                  static_cast<scale_rule>(r / 65536 % one_level_scale_rules),
                                  r / 8 % 2 == 0 ? rounding::nearest_even : rounding::stochastic);
          q.in = in;
          q.out = {out, layouts(s.rows, s.cols)[r / 16 % 6], {}, {}};
          if (r / 512 % 2 == 0) {
            q.out[codes_transposed] = layouts(cols, rows)[r / 1024 % 6];
            q.out[scales_transposed] = layouts(s.cols, s.rows)[r / 8192 % 6];
          }
          backends.compare(call_of(q, from), h.per_backend);
        }
      }
    }
  }
  done(h);
}

/// Checks scales over a sweep of amaxes; each tile has one element.
void check_amaxes(comparer& backends, const effort& much, const done_function& done) {
  constexpr std::uint64_t all = std::uint64_t{1} << 31;
  constexpr int tile_of_16 = 3;
  heading h = heading_of(
      backends, "every " + std::to_string(much.amax_stride) + "th amax of the 2^31, a tile each");
  const std::uint64_t total = (all + much.amax_stride - 1) / much.amax_stride;
  std::uint64_t draw = 30000;
  for (std::uint64_t first = 0; first < total; first += much.slice) {
    const std::uint64_t count = std::min(much.slice, total - first);
    const code_buffer input =
        fp32_sweep(first * much.amax_stride, much.amax_stride, count, backends.threads());
    backends.set_input(input);
    for (const format_id to : targets) {
      for (int rule = 0; rule < one_level_scale_rules; ++rule) {
        quantization q = random_quantization(draw++, to, tile_of_16, static_cast<scale_rule>(rule),
                                             rounding::nearest_even);
        q.scale.eps = 0;
        q.scale.upper_bound = numerics::binary32::inf;
        place_dense(q, {static_cast<std::int64_t>(count), 1}, false);
        backends.compare(call_of(q, fp32), h.per_backend);
      }
    }
  }
  done(h);
}

void check_statistics(comparer& backends, const done_function& done) {
  heading h = heading_of(backends, "statistics");
  std::uint64_t draw = 40000;
  for (const format_id from : sources) {
    const code_buffer input = matrix_of(from, draw, std::uint64_t{130} * 270, backends.threads());
    backends.set_input(input);
    for (const format_id to : targets) {
      for (int tile = 0; tile < tile_count; ++tile) {
        quantization q = random_quantization(
            draw, to, tile, static_cast<scale_rule>(draw % one_level_scale_rules),
            draw % 2 == 0 ? rounding::nearest_even : rounding::stochastic);
        place_dense(q, shapes[random_pattern(6, draw++) % shapes.size()], false);
        q.counts = true;
        backends.compare(call_of(q, from), h.per_backend);
      }
    }
  }
  done(h);
}

void check_dequantization(comparer& backends, const done_function& done) {
  constexpr std::int64_t rows = 130;
  constexpr std::int64_t cols = 270;
  heading h = make_heading(backends, "scales of all magnitudes", "", "dequantize ");
  const code_buffer input = codes_by(e4m3, rows * cols, backends.threads(),
                                     [](std::uint64_t i) { return random_pattern(7, i); });
  const code_buffer factors = codes_by(fp32, rows * cols, backends.threads(), [](std::uint64_t i) {
    return i % 4 == 0 ? random_pattern(8, i) : matrix_bits(9, i);
  });
  backends.set_input(input, &factors);
  for (const format_id from : targets) {
    for (const format_id to : sources) {
      for (int tile = 0; tile < tile_count; ++tile) {
        backends.compare(call_of(dequantization{from, to, tile, rows, cols}), h.per_backend);
      }
    }
  }
  done(h);
}

}  // namespace

void check_quantizations(comparer& backends, const effort& much, const done_function& done) {
  if (backends.count() == 0) return;
  check_tiles(backends, much, done);
  check_layouts(backends, done);
  check_amaxes(backends, much, done);
  check_statistics(backends, done);
  check_dequantization(backends, done);
}

}  // namespace samebits::backends::verification
