// Selects the cuda-native kernel that runs a quantization, and fills in its launch parameters.
#include "backends/cuda/quantize/route.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/tile_launches.cuh"
#include "backends/cuda/quantize/tuning.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

std::uint64_t unsigned_of(std::int64_t n) { return static_cast<std::uint64_t>(n); }

int log2_of(std::int64_t power) { return std::countr_zero(unsigned_of(power)); }

bool has_aligned_rows(const cells& c, std::uint64_t to) {
  return is_aligned(c.data, to) && c.row_bytes % to == 0;
}

/// Whether the tile size is supported: 1 x G with G from 16 to 256, G x G or G x 1 with G from 16
/// to 128; G is a power of two.
bool supports_tile(const quantize_call& call) {
  const std::int64_t rows = call.grid.tile_rows, cols = call.grid.tile_cols;
  const auto power = [](std::int64_t n, std::int64_t maximum) {
    return n >= 16 && n <= maximum && std::has_single_bit(unsigned_of(n));
  };
  if (rows == 1) return power(cols, 256);
  return power(rows, 128) && (cols == 1 || cols == rows);
}

/// Whether the fast kernels have the codes and the scale rule: codes of 8 bits, one level.
bool supports_rule(const quantize_call& call) {
  const bool bytes = call.to == format_id::e4m3 || call.to == format_id::e5m2;
  return bytes && !has_two_levels(call.scale.rule);
}

/// Whether the views are supported: contiguous rows of at most 2^31 columns, fp32 scales aligned to
/// 4 bytes.
bool supports_views(const quantize_call& call) {
  const quantize_outputs& o = call.outputs;
  return supports_rule(call) && call.in.col_stride == 1 && call.in.cols <= std::int64_t{1} << 31 &&
         (o.codes.data == nullptr || o.codes.col_stride == 1) &&
         (o.codes_transposed.data == nullptr || o.codes_transposed.col_stride == 1) &&
         is_aligned(call.inverse_scales.data, 4) &&
         (call.scale_format == format_id::e8m0 ||
          (is_aligned(o.scales.data, 4) && is_aligned(o.scales_transposed.data, 4)));
}

/// Whether elements must be rounded by the integer definition, because neither the FP8 conversion
/// instructions nor stochastic_cast (stochastic rounding) gives the bits of the call's options.
bool only_the_definition(const quantize_call& call) {
  const cast_rule& cast = call.cast;
  if (cast.nan != nan_policy::canonical) return true;
  const bool bounded = call.scale.upper_bound == numerics::binary32::inf &&
                       numerics::bounds_elements(call.scale.rule) &&
                       call.inverse_scales.data == nullptr;
  const bool saturates = cast.overflow == overflow::saturate;
  if (cast.rounding == rounding::nearest_even) {
    return !bounded && (!saturates || call.scale.rule == scale_rule::div);
  }
  const bool whole_blocks = call.random.offset % 16 == 0 && call.pitch % 16 == 0;
  return !saturates || !one_row_tiles(call) || call.scale.rule == scale_rule::div || !bounded ||
         !whole_blocks;
}

/// Vectors of 8 elements that hold a row.
std::uint64_t vectors_of(std::int64_t cols) {
  return unsigned_of((cols + vector_length - 1) / vector_length);
}

/// log2 of the threads along a row of the block tile: 4, except for 1 x G tiles without transposed
/// codes. There a row segment is long enough for its scales to fill a sector of 32 bytes, within at
/// most 2048 columns.
int log2_lanes_of(const quantize_call& call) {
  if (!one_row_tiles(call) || call.outputs.codes_transposed.data != nullptr) return 4;
  const int tile = log2_of(call.grid.tile_cols);
  const int whole_row = std::bit_width(vectors_of(call.in.cols) - 1);
  const int sector = call.scale_format == format_id::e8m0 ? std::min(tile + 2, 8) : tile;
  return std::clamp(whole_row, std::max(4, tile - 3), std::max(4, sector));
}

/// The launch parameters of a call whose block tiles have 2^log2_lanes threads along a row.
tile_task task_of(const quantize_call& call, int log2_lanes) {
  const const_matrix_view& in = call.in;
  const quantize_outputs& o = call.outputs;
  tile_task t{};
  t.in = cells_of(in);
  t.codes = cells_of(o.codes);
  t.codes_transposed = cells_of(o.codes_transposed);
  if (in.rows == 1) t.in.row_bytes = t.codes.row_bytes = 0;
  if (in.cols == 1) t.codes_transposed.row_bytes = 0;
  t.scales = cells_of(o.scales);
  t.scales_transposed = cells_of(o.scales_transposed);
  t.inverse_scales = cells_of(call.inverse_scales);
  t.saturates = call.cast.overflow == overflow::saturate;
  t.byte_scales = call.scale_format == format_id::e8m0;
  t.rows = unsigned_of(in.rows);
  t.cols = static_cast<std::uint32_t>(in.cols);
  t.tile_rows = log2_of(call.grid.tile_rows);
  t.tile_cols = log2_of(call.grid.tile_cols);
  t.log2_lanes = log2_lanes;
  const auto block_cols = unsigned_of(std::int64_t{vector_length} << t.log2_lanes);
  t.col_blocks = static_cast<std::uint32_t>((unsigned_of(in.cols) + block_cols - 1) / block_cols);
  t.aligned =
      has_aligned_rows(t.in, 16) && has_aligned_rows(t.codes, 8) && in.cols % vector_length == 0;
  t.aligned_transposed = has_aligned_rows(t.codes_transposed, 16);
  t.by_definition = only_the_definition(call);
  t.scale = call.scale;
  t.cast = call.cast;
  t.random = source_of(call.random);
  t.index = call.random.offset;
  t.pitch = call.pitch;
  t.skip = call.skip_if_nonzero;
  return t;
}

/// log2 of the threads that share one row. Each thread holds at most vectors_per_thread vectors of
/// 8 elements. A longer row goes through the registers of a whole block in several spans.
int log2_row_lanes_of(const quantize_call& call) {
  constexpr int minimum = 2;
  const auto vectors = vectors_of(call.in.cols);
  const int threads = std::bit_width((vectors + vectors_per_thread - 1) / vectors_per_thread - 1);
  return std::clamp(threads, minimum, std::countr_zero(unsigned_of(block_threads)));
}

/// A call with one scale per matrix, as a call on one row if the matrix is dense and small: the row
/// kernel is one launch, the kernels of one scale are four.
quantize_call one_row_call(const quantize_call& call) {
  const quantize_outputs& o = call.outputs;
  const std::int64_t elements = call.in.rows * call.in.cols;
  if (call.grid.rows != 1 || call.grid.cols != 1 || elements > one_row_elements ||
      !is_flat(call.in) || !is_flat(o.codes) || o.codes_transposed.data != nullptr ||
      call.cast.rounding != rounding::nearest_even) {
    return call;
  }
  quantize_call row = call;
  row.in.rows = row.outputs.codes.rows = 1;
  row.in.cols = row.outputs.codes.cols = elements;
  row.grid.tile_rows = 1;
  row.grid.tile_cols = elements;
  return row;
}

/// A call with one scale per matrix, rewritten for the block kernel with 128 x 128 tiles. A dense
/// matrix of fewer than 128 rows is reshaped to rows of 2048 elements. The call's scale is stored
/// by another kernel, so the rewritten call stores none.
quantize_call whole_call(const quantize_call& call) {
  constexpr std::int64_t side = 128, width = 2048;
  quantize_call whole = call;
  whole.outputs.scales = whole.outputs.scales_transposed = {};
  whole.grid.tile_rows = whole.grid.tile_cols = side;
  const std::int64_t elements = call.in.rows * call.in.cols;
  const matrix_view& codes = call.outputs.codes;
  if (call.in.rows < side && elements % width == 0 && is_flat(call.in) &&
      (codes.data == nullptr || is_flat(codes)) && call.outputs.codes_transposed.data == nullptr &&
      call.cast.rounding == rounding::nearest_even) {
    const auto reshape = [&](auto& v) {
      v.rows = elements / width;
      v.cols = v.row_stride = width;
    };
    reshape(whole.in);
    reshape(whole.outputs.codes);
  }
  return whole;
}

/// Whether a launch can have this many blocks along x.
bool fits_grid(std::uint64_t blocks) { return blocks <= 0x7FFFFFFF; }

/// log2 of the vectors of 8 elements along a row of the block tile, chosen so that the width of the
/// block tile divides the row length; 0 if no supported width does. Each row segment in a block
/// tile is then a complete subtree of the sums.
int log2_statistics_lanes(const quantize_call& call) {
  const int dividing = std::countr_zero(unsigned_of(call.in.cols)) - log2_of(vector_length);
  const int minimum = one_row_tiles(call) ? std::max(4, log2_of(call.grid.tile_cols) - 3) : 4;
  return dividing < minimum ? 0 : std::clamp(dividing, minimum, log2_lanes_of(call));
}

/// Partial sums of a launch with statistics: one per row of each block tile.
std::uint64_t sum_count(const tile_task& t) { return t.rows * t.col_blocks; }

}  // namespace

std::optional<tile_task> block_task(const quantize_call& call) {
  if (is_empty(call) || call.outputs.statistics != nullptr || !supports_tile(call) ||
      !supports_views(call)) {
    return {};
  }
  const tile_task t = task_of(call, log2_lanes_of(call));
  if (t.codes_transposed.data != nullptr && t.tile_cols > 7) return {};
  if (!fits_grid(block_count(t))) return {};
  return t;
}

std::optional<tile_task> row_task(const quantize_call& original) {
  const quantize_call call = one_row_call(original);
  const quantize_outputs& o = call.outputs;
  if (is_empty(call) || call.grid.tile_rows != 1 || call.grid.cols != 1 ||
      call.in.cols > longest_row || o.statistics != nullptr || o.codes.data == nullptr ||
      o.codes_transposed.data != nullptr || !supports_views(call)) {
    return {};
  }
  tile_task t = task_of(call, log2_row_lanes_of(call));
  t.by_definition |= call.cast.rounding != rounding::nearest_even;
  if (!fits_grid(row_block_count(t))) return {};
  return t;
}

std::optional<tile_task> one_scale_task(const quantize_call& call) {
  if (is_empty(call) || call.grid.rows != 1 || call.grid.cols != 1 ||
      call.outputs.statistics != nullptr || !supports_views(call)) {
    return {};
  }
  tile_task t = task_of(whole_call(call), 4);
  t.by_definition |= call.cast.rounding != rounding::nearest_even;
  if (!fits_grid(block_count(t))) return {};
  return t;
}

std::optional<tile_task> statistics_task(const quantize_call& call) {
  if (is_empty(call) || call.outputs.statistics == nullptr || !supports_tile(call) ||
      call.grid.tile_cols == 1 || !supports_views(call) || log2_statistics_lanes(call) == 0) {
    return {};
  }
  if (call.outputs.codes_transposed.data != nullptr || call.inverse_scales.data != nullptr ||
      call.cast.rounding != rounding::nearest_even || call.scale.rule == scale_rule::div ||
      call.scale.upper_bound != numerics::binary32::inf ||
      !numerics::bounds_elements(call.scale.rule)) {
    return {};
  }
  const tile_task t = task_of(call, log2_statistics_lanes(call));
  if (!t.aligned || t.by_definition || !fits_grid(block_count(t))) return {};
  return t;
}

quantize_route route_of(const quantize_call& call) {
  if (const auto t = statistics_task(call)) {
    return {quantize_kernel::statistics, *t, statistics_bytes(sum_count(*t), block_count(*t))};
  }
  if (const auto t = block_task(call)) return {quantize_kernel::blocks, *t, 0};
  if (const auto t = row_task(call)) return {quantize_kernel::rows, *t, 0};
  if (const auto t = one_scale_task(call)) {
    return {quantize_kernel::one_scale, *t, tile_memory::bytes(1)};
  }
  return {quantize_kernel::general, {}, general_workspace(call)};
}

statistics_parts parts_of(const quantize_route& route, std::byte* workspace) {
  return parts_at(workspace, sum_count(route.task), block_count(route.task));
}

}  // namespace samebits::cuda
