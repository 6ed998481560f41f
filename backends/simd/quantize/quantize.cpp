// Quantization on the SIMD backends: kernels compute the calls they support on several threads, the
// reference backend all others. Compiled without instruction set flags.
#include "backends/dispatch/calls/quantize.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/reference/quantize_statistics.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test/build_flags.hpp"
#include "backends/self_test/self_test.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::backends {
namespace {

namespace binary32 = numerics::binary32;
using numerics::chunk_elements;
using numerics::tile_scale;

bool has_contiguous_rows(const const_matrix_view& v) { return v.col_stride == 1 || v.cols <= 1; }

/// Whether blocks of tiles can be quantized in one pass.
bool is_dense(const quantize_call& call) {
  const quantize_outputs& o = call.outputs;
  return call.scale_format == format_id::fp32 && call.inverse_scales.data == nullptr &&
         o.codes.data != nullptr && o.codes_transposed.data == nullptr && o.statistics == nullptr &&
         has_contiguous_rows(call.in) && has_contiguous_rows(o.codes);
}

/// The amax of a matrix, whose elements are split among threads.
numerics::tile_amax amax_of_matrix(const quantize_kernel& kernel, const quantize_call& call,
                                   int threads) {
  std::mutex combining;
  numerics::tile_amax amax = numerics::no_amax;
  for_each_part(call.in.rows * call.in.cols, threads, [&](element_range range) {
    const numerics::tile_amax part = kernel.amax(call, range);
    const std::scoped_lock lock(combining);
    amax = numerics::combined(amax, part);
  });
  return amax;
}

/// The scale of a matrix that is one tile.
tile_scale scale_of_whole(const quantize_kernel& kernel, const quantize_call& call, int threads) {
  return numerics::any_scale_of(spec_of(call.to), call.scale,
                                amax_of_matrix(kernel, call, threads));
}

/// Quantizes a matrix with one scale, split among threads.
void quantize_whole(const quantize_kernel& kernel, const quantize_call& call, int threads) {
  const tile_scale scale = scale_of_whole(kernel, call, threads);
  store_tile_scale(call.outputs.scales, 0, 0, scale.dequantization_scale);
  store_tile_scale(call.outputs.scales_transposed, 0, 0, scale.dequantization_scale);
  for_each_part(call.in.rows * call.in.cols, threads, [&](element_range range) {
    const ieee_control_register ieee;
    kernel.cast(call, scale, range);
  });
}

/// Calls f(range of tiles) on several threads.
template <class Function>
void for_each_tiles(const tile_grid& g, int threads, const Function& f) {
  for_each_part(g.rows * g.cols, threads, f, items_worth_a_thread(g.tile_rows * g.tile_cols));
}

/// The scales of the tiles of a range whose inverse scales are given.
void read_inverse_scales(const quantize_call& call, element_range tiles, tile_scale* table) {
  const std::int64_t cols = call.grid.cols;
  for (std::int64_t i = tiles.begin; i < tiles.end; ++i) {
    table[i] = numerics::scale_of_inverse(binary32_of(call.inverse_scales, i / cols, i % cols));
  }
}

/// Computes the scales of all tiles in row-major order and writes the wanted scale outputs.
void find_scales(const quantize_kernel& kernel, const quantize_call& call, int threads,
                 tile_scale* table) {
  const tile_grid& g = call.grid;
  const bool given = call.inverse_scales.data != nullptr;
  const bool whole = !given && g.rows * g.cols == 1;
  if (whole) table[0] = scale_of_whole(kernel, call, threads);
  for_each_tiles(g, threads, [&](element_range range) {
    const ieee_control_register ieee;
    if (given) read_inverse_scales(call, range, table);
    if (!given && !whole) kernel.scales(call, range, table);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const std::uint32_t scale = table[i].dequantization_scale;
      store_tile_scale(call.outputs.scales, i / g.cols, i % g.cols, scale);
      store_tile_scale(call.outputs.scales_transposed, i % g.cols, i / g.cols, scale);
    }
  });
}

/// The smallest magnitude, as binary32 bits, whose cast overflows. With stochastic rounding: the
/// smallest whose cast may overflow. Binary search: the order of magnitudes is that of their bits.
std::uint32_t overflow_start(const quantize_call& call) {
  const format_spec to = spec_of(call.to);
  if (call.cast.rounding == rounding::stochastic) return numerics::largest_value(to) + 1;
  std::uint32_t below = numerics::largest_value(to);
  std::uint32_t start = binary32::inf;
  while (start - below > 1) {
    const std::uint32_t middle = below + (start - below) / 2;
    const bool overflow = numerics::encode<std::uint32_t>(to, call.cast, middle, 0).overflow;
    (overflow ? start : below) = middle;
  }
  return start;
}

/// The processor's multiplication and division; the control register must have its IEEE 754 state.
/// Any NaN stands for the canonical NaN.
struct host_hardware {
  static std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) * std::bit_cast<float>(b));
  }
  static std::uint32_t quotient(std::uint32_t a, std::uint32_t b) {
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) / std::bit_cast<float>(b));
  }
};

/// Whether an element x, given as binary32 bits, counts as saturated under stochastic rounding.
bool is_saturated(const quantize_call& call, const tile_scale& scale, std::uint32_t x,
                  std::uint64_t index) {
  const std::uint32_t y = numerics::scaled<host_hardware>(call.scale.rule, scale, x);
  if (binary32::magnitude(y) <= numerics::largest_value(spec_of(call.to))) return false;
  const random_stream& r = call.random;
  const auto dither = numerics::align_random<std::uint32_t>(
      numerics::random_word(r.seed, r.stream, index, r.bits), r.bits);
  numerics::quantize_counts counts;
  counts.add({x, y, 1, numerics::binary32::one,
              numerics::encode<std::uint32_t>(spec_of(call.to), call.cast, y, dither).overflow});
  return counts.saturated != 0;
}

/// The number of elements of a range that count as saturated under stochastic rounding.
std::uint64_t count_saturated(const quantize_call& call, const tile_scale* scales,
                              element_range range) {
  const tile_grid& g = call.grid;
  std::uint64_t saturated = 0;
  for (std::int64_t i = range.begin; i < range.end;) {  // the part of a row in one tile
    const std::int64_t row = i / call.in.cols;
    const std::int64_t col = i % call.in.cols;
    const std::int64_t count =
        std::min({range.end - i, call.in.cols - col, g.tile_cols - col % g.tile_cols});
    const tile_scale& scale = scales[row / g.tile_rows * g.cols + col / g.tile_cols];
    const std::uint64_t index = random_index(call.random, call.pitch, row, col);
    for (std::int64_t k = 0; k < count; ++k) {
      const std::uint32_t x = binary32_of(call.in, row, col + k);
      if (is_saturated(call, scale, x, index + static_cast<std::uint64_t>(k))) ++saturated;
    }
    i += count;
  }
  return saturated;
}

/// Quantizes by the chunks of contract §6, after the scales of all tiles are known.
void quantize_by_chunks(const quantize_kernel& kernel, const quantize_call& call, int threads) {
  const std::int64_t elements = call.in.rows * call.in.cols;
  const std::int64_t chunks = (elements + chunk_elements - 1) / chunk_elements;
  const bool counts = call.outputs.statistics != nullptr;
  std::vector<quantize_chunk_statistics> statistics(counts ? static_cast<std::size_t>(chunks) : 0);
  std::unique_ptr<tile_scale[]> own;
  if (call.scale_room == nullptr) {
    const auto tiles = static_cast<std::size_t>(call.grid.rows * call.grid.cols);
    own = std::make_unique_for_overwrite<tile_scale[]>(tiles);
  }
  tile_scale* const scales = own != nullptr ? own.get() : call.scale_room;
  find_scales(kernel, call, threads, scales);
  const chunk_task task = {scales, overflow_start(call), counts ? statistics.data() : nullptr};
  const bool random = call.cast.rounding == rounding::stochastic;
  for_each_part(
      chunks, threads,
      [&](element_range range) {
        const ieee_control_register ieee;
        kernel.chunks(call, task, range);
        if (!counts || !random) return;
        for (std::int64_t i = range.begin; i < range.end; ++i) {
          std::uint64_t& saturated = statistics[static_cast<std::size_t>(i)].counts.saturated;
          if (saturated == 0) continue;  // else the number of those that may be saturated
          saturated = count_saturated(
              call, scales, {i * chunk_elements, std::min(elements, (i + 1) * chunk_elements)});
        }
      },
      items_worth_a_thread(chunk_elements));
  if (counts) *call.outputs.statistics = total(statistics);
}

}  // namespace

void quantize_by_lanes(const lane_kernels& by, const quantize_call& given, const executor& where) {
  if (!has_contiguous_rows(given.in) || is_four_over_six(given.scale.rule)) {
    return reference_quantize(given, where);
  }
  if (given.outputs.statistics != nullptr) {
    require_tested(reference);  // total() adds
    require_tested(by.self);    // kernels square and add
  }
  if (given.skip_if_nonzero != nullptr && *given.skip_if_nonzero != 0) return;
  const quantize_kernel& kernel = by.quantize;
  const auto amax = [&] { return amax_of_matrix(kernel, given, where.threads); };
  const quantize_call call = with_tensor_level(given, std::cref(amax));  // allocates no copy
  const std::int64_t tiles = call.grid.rows * call.grid.cols;
  if (tiles == 0) {
    if (call.outputs.statistics != nullptr) *call.outputs.statistics = {};
    return;
  }
  if (!is_dense(call)) return quantize_by_chunks(kernel, call, where.threads);
  if (tiles == 1) return quantize_whole(kernel, call, where.threads);
  for_each_tiles(call.grid, where.threads, [&](element_range range) {
    const ieee_control_register ieee;
    kernel.tiles(call, range);
  });
}

}  // namespace samebits::backends
