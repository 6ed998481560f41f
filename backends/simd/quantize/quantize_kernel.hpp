// SIMD quantization: amax, scales and codes of blocks of tiles, compiled once per instruction set.
//
// One translation unit per instruction set includes this file. Two rules keep code for one
// instruction set from being called on a machine without it:
// - Every template here has the Isa among its arguments.
// - All other functions used here are always inlined or have internal linkage. No function of the
//   standard library is called, because the linker keeps one copy of it for the whole program.
//
// Each block is read twice: from memory for its amaxes, then from the caches for its codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/calls/quantize.hpp"
#include "backends/dispatch/element.hpp"
#include "backends/self_test/build_flags.hpp"
#include "backends/simd/lanes/amax.hpp"
#include "backends/simd/lanes/hardware.hpp"
#include "backends/simd/quantize/scaled_cast.hpp"
#include "numerics/quantize/scale.hpp"

namespace samebits::simd {

/// Sizes of a block.
namespace block {
inline constexpr std::int64_t row_bytes = 16384;      ///< one row of elements: half of an L1 cache
inline constexpr std::int64_t total_bytes = 1 << 18;  ///< several rows: part of an L2 cache
/// columns of a block, if tiles are one column wide
inline constexpr std::int64_t min_columns = 256;
inline constexpr std::int64_t max_columns = 1024;
inline constexpr std::int64_t max_tiles = 1024;     ///< max tiles of a block
inline constexpr std::int64_t max_tall_tiles = 64;  ///< max tiles with several rows and columns
}  // namespace block

/// Consecutive tiles of one row of tiles, and the elements that they contain.
struct tile_block {
  std::int64_t tile_row, tile_col, tiles;
  std::int64_t row, rows, col, cols;
};

/// Quantizes the blocks of one call.
template <class Isa, class Source>
struct block_pass {
  using word = typename Isa::word;
  static constexpr int width = Source::spec().storage_bits;
  static constexpr std::int64_t bytes = width / 8;

  const backends::quantize_call& call;
  const row_cast<Isa>& cast;

  [[nodiscard]] SAMEBITS_INLINE const std::byte* in(std::int64_t row, std::int64_t col) const {
    return static_cast<const std::byte*>(call.in.data) + (row * call.in.row_stride + col) * bytes;
  }
  [[nodiscard]] SAMEBITS_INLINE std::byte* out(std::int64_t row, std::int64_t col) const {
    const matrix_view& codes = call.outputs.codes;
    return static_cast<std::byte*>(codes.data) + row * codes.row_stride + col;
  }

  /// Calls f(first element, count) for the row segments of part of a block.
  template <class Function>
  SAMEBITS_INLINE void for_rows(const tile_block& b, std::int64_t col, std::int64_t cols,
                                const Function& f) const {
    for (std::int64_t r = b.row; r < b.row + b.rows; ++r) f(in(r, col), cols);
  }

  /// The first column and the number of columns of the i-th tile of a block.
  SAMEBITS_INLINE void columns_of(const tile_block& b, std::int64_t i, std::int64_t& col,
                                  std::int64_t& cols) const {
    col = b.col + i * call.grid.tile_cols;
    cols = smaller(call.grid.tile_cols, b.col + b.cols - col);
  }

  /// Computes the largest magnitude code of each tile of a block.
  void magnitudes(const tile_block& b, std::uint32_t* of) const {
    if (call.grid.tile_cols == 1) return magnitudes_of_columns(b, of);
    word maximum[block::max_tall_tiles];
    for (std::int64_t at = 0; at < b.tiles; at += block::max_tall_tiles) {
      const std::int64_t tiles = smaller(block::max_tall_tiles, b.tiles - at);
      for (std::int64_t i = 0; i < tiles; ++i) maximum[i] = word(0u);
      for (std::int64_t r = b.row; r < b.row + b.rows; ++r) {
        for (std::int64_t i = 0; i < tiles; ++i) {
          std::int64_t col = 0, cols = 0;
          columns_of(b, at + i, col, cols);
          maximum[i] = largest_magnitudes<Isa, width>(maximum[i], in(r, col), cols);
        }
      }
      for (std::int64_t i = 0; i < tiles; ++i) of[at + i] = Isa::largest(maximum[i]);
    }
  }

  void magnitudes_of_columns(const tile_block& b, std::uint32_t* of) const {
    for (std::int64_t i = 0; i < b.cols; i += word::count) {
      const std::int64_t left = smaller(word::count, b.cols - i);
      word maximum = 0u;
      const std::byte* p = in(b.row, b.col + i);
      for (std::int64_t r = 0; r < b.rows; ++r, p += call.in.row_stride * bytes) {
        const word codes = left == word::count ? load<Isa>(fixed_width<width>{}, p)
                                               : load_tail<Isa, width>(p, left, 0);
        maximum = max_word(maximum, codes & word(magnitude_bits_of<width>));
      }
      store<Isa>(of + i, maximum);
    }
  }

  /// Writes the scales of tiles i, i + 1, ... of a block.
  SAMEBITS_INLINE void store_scales(const tile_block& b, std::int64_t i, word scales) const {
    std::uint32_t each[word::count];
    store<Isa>(each, scales);
    const std::int64_t count = smaller(word::count, b.tiles - i);
    const auto put = [&](const matrix_view& v, std::int64_t first, std::int64_t step)
        __attribute__((always_inline)) {
      if (v.data == nullptr) return;
      constexpr std::int64_t size = sizeof each[0];
      copy_codes<Isa>(static_cast<std::byte*>(v.data) + first * size, step * size,
                      reinterpret_cast<const std::byte*>(each), size, size, count);
    };
    const matrix_view& v = call.outputs.scales;
    const matrix_view& t = call.outputs.scales_transposed;
    put(v, b.tile_row * v.row_stride + (b.tile_col + i) * v.col_stride, v.col_stride);
    put(t, (b.tile_col + i) * t.row_stride + b.tile_row * t.col_stride, t.row_stride);
  }

  /// The amaxes of tiles i, i + 1, ... of a block, from their largest magnitude codes.
  [[nodiscard]] SAMEBITS_INLINE word amaxes(const tile_block& b, std::int64_t i,
                                            word magnitudes) const {
    const word amax = numerics::decode<word>(Source::spec(), magnitudes);
    if (Isa::largest(magnitudes) < numerics::inf_code(Source::spec())) return amax;
    std::uint32_t each[word::count];
    store<Isa>(each, magnitudes);
    for (std::int64_t k = 0; k < smaller(word::count, b.tiles - i); ++k) {
      std::int64_t col = 0, cols = 0;
      columns_of(b, i + k, col, cols);
      each[k] = static_cast<std::uint32_t>(amax_from<Isa>(
          Source{}, call.scale.nonfinite,
          each[k], [&](const auto& f) __attribute__((always_inline)) {
            for_rows(b, col, cols, f);
          }));
    }
    return load<Isa>(each);
  }

  /// Computes the scales of the tiles of a block. Calls f(i, scales) for tiles i, i + 1, ..., one per
  /// lane. Returns whether no element is NaN or Inf. `largest` has space for one number per tile and a
  /// cast_unit more.
  template <class Function>
  SAMEBITS_INLINE bool scales(const tile_block& b, std::uint32_t* largest,
                              const Function& f) const {
    magnitudes(b, largest);
    for (std::int64_t i = b.tiles; i < b.tiles + cast_unit<Isa>; ++i) largest[i] = 0;
    word maximum = 0u;
    for (std::int64_t i = 0; i < b.tiles; i += word::count) {
      const word magnitude = load<Isa>(largest + i);
      maximum = max_word(maximum, magnitude);
      const word amax = amaxes(b, i, magnitude);
      f(i, numerics::any_scales_of<hardware<Isa>>(spec_of(call.to), call.scale, amax));
    }
    return Isa::largest(maximum) < numerics::inf_code(Source::spec());
  }

  /// Computes amaxes, scales and codes of a block.
  void run(const tile_block& b) const {
    alignas(64) std::uint32_t factors[block::max_tiles + cast_unit<Isa>];
    const bool finite = scales(
        b, factors,
        [&](std::int64_t i, const numerics::tile_scales<word>& of) __attribute__((always_inline)) {
          store<Isa>(factors + i, of.factor);
          store_scales(b, i, of.dequantization_scale);
        });
    const bool one = b.tiles == 1;
    const auto tile = static_cast<unsigned long long>(call.grid.tile_cols);
    const bool bounded = call.scale.upper_bound == numerics::binary32::inf &&
                         numerics::bounds_elements(call.scale.rule) && finite;
    cast_rows(b, {factors, one ? 63 : __builtin_ctzll(tile), !one && tile == 1, bounded});
  }

  /// Writes the scales of a block to a table of all tiles in row-major order.
  void run_scales(const tile_block& b, numerics::tile_scale* table) const {
    alignas(64) std::uint32_t largest[block::max_tiles + cast_unit<Isa>];
    numerics::tile_scale* const to = table + b.tile_row * call.grid.cols + b.tile_col;
    scales(
        b, largest,
        [&](std::int64_t i, const numerics::tile_scales<word>& of) __attribute__((always_inline)) {
          std::uint32_t dequantization[word::count];
          std::uint32_t factors[word::count];
          store<Isa>(dequantization, of.dequantization_scale);
          store<Isa>(factors, of.factor);
          for (std::int64_t k = 0; k < smaller(word::count, b.tiles - i); ++k) {
            to[i + k] = {dequantization[k], factors[k]};
          }
        });
  }

  void cast_rows(const tile_block& b, const row_factors& f) const {
    for (std::int64_t r = b.row; r < b.row + b.rows; ++r) {
      const std::uint64_t index = backends::random_index(call.random, call.pitch, r, b.col);
      cast.row(in(r, b.col), out(r, b.col), b.cols, f, index);
    }
  }

  /// Number of tiles of a block.
  [[nodiscard]] std::int64_t block_tiles(std::int64_t rows) const {
    const std::int64_t tile_cols = call.grid.tile_cols;
    if (tile_cols == 1) {
      return larger(block::min_columns,
                    smaller(block::max_columns, block::total_bytes / bytes / rows));
    }
    if (rows == 1) {
      return larger(1, smaller(block::max_tiles, block::row_bytes / bytes / tile_cols));
    }
    return larger(1, smaller(block::max_tall_tiles, block::total_bytes / bytes / rows / tile_cols));
  }

  /// Calls f(block) for the blocks of a range of tiles, numbered in row-major order.
  template <class Function>
  SAMEBITS_INLINE void for_blocks(backends::element_range range, const Function& f) const {
    const backends::tile_grid& g = call.grid;
    std::int64_t tile = range.begin;
    while (tile < range.end) {
      tile_block b;
      b.tile_row = tile / g.cols;
      b.tile_col = tile % g.cols;
      b.row = b.tile_row * g.tile_rows;
      b.rows = smaller(g.tile_rows, call.in.rows - b.row);
      b.tiles = smaller(smaller(g.cols - b.tile_col, range.end - tile), block_tiles(b.rows));
      b.col = b.tile_col * g.tile_cols;
      b.cols = smaller(b.tiles * g.tile_cols, call.in.cols - b.col);
      f(b);
      tile += b.tiles;
    }
  }
};

/// Calls f(pass) with the block_pass of the call.
template <class Isa, class Function>
void with_pass(const backends::quantize_call& call, const Function& f) {
  cast_random<Isa> random(call.random);
  const std::int64_t bytes = spec_of(call.in.format).storage_bits / 8;
  const bool large = (bytes + 1) * call.in.rows * call.in.cols >= streaming::min_bytes;
  const bool divide = call.scale.rule == scale_rule::div;
  const row_cast<Isa> cast{cast_kernel_of<Isa>(call), {call.cast, divide}, bytes, large, random};
  backends::visit_quantized(call.in.format, [&]<format_id F>() {
    f(block_pass<Isa, backends::fixed_format<F>>{call, cast});
  });
  if (large) Isa::stream_fence();
}

/// quantize_kernel::tiles.
template <class Isa>
void quantize_tiles(const backends::quantize_call& call, backends::element_range tiles) {
  with_pass<Isa>(call, [&](const auto& pass) {
    pass.for_blocks(tiles, [&](const tile_block& b) { pass.run(b); });
  });
}

/// quantize_kernel::scales.
template <class Isa>
void scales_of_tiles(const backends::quantize_call& call, backends::element_range tiles,
                     numerics::tile_scale* table) {
  with_pass<Isa>(call, [&](const auto& pass) {
    pass.for_blocks(tiles, [&](const tile_block& b) { pass.run_scales(b, table); });
  });
}

/// quantize_kernel::amax.
template <class Isa>
numerics::tile_amax amax_of_elements(const backends::quantize_call& call,
                                     backends::element_range range) {
  using word = typename Isa::word;
  numerics::tile_amax amax = numerics::no_amax;
  backends::visit_quantized(call.in.format, [&]<format_id F>() {
    constexpr int width = spec_of(F).storage_bits;
    const auto visit = [&](const auto& f) {
      backends::for_each_row_part(call.in.cols, range,
                                  [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                                    f(static_cast<const std::byte*>(call.in.data) +
                                          (row * call.in.row_stride + col) * (width / 8),
                                      count);
                                  });
    };
    word maximum = 0u;
    visit([&](const std::byte* p, std::int64_t count) {
      maximum = largest_magnitudes<Isa, width>(maximum, p, count);
    });
    amax = amax_from<Isa>(backends::fixed_format<F>{}, call.scale.nonfinite, Isa::largest(maximum),
                          visit);
  });
  return amax;
}

/// quantize_kernel::cast.
template <class Isa>
void cast_elements(const backends::quantize_call& call, const numerics::tile_scale& scale,
                   backends::element_range range) {
  with_pass<Isa>(call, [&](const auto& pass) {
    const row_factors f{&scale.factor, 63, false, false};
    backends::for_each_row_part(call.in.cols, range,
                                [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                                  pass.cast_rows({0, 0, 1, row, 1, col, count}, f);
                                });
  });
}

}  // namespace samebits::simd
