// Which quantizations the kernels that hold a patch of the matrix in registers take, and how.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/quantize/tensor_amax.cuh"
#include "backends/cuda/quantize/tiles/block_tiles.cuh"
#include "backends/cuda/quantize/tiles/list_tiles.cuh"
#include "backends/cuda/quantize/tiles/patch.cuh"
#include "backends/cuda/quantize/tiles/row_tiles.cuh"
#include "samebits/error.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

std::uint64_t unsigned_of(std::int64_t n) { return static_cast<std::uint64_t>(n); }

int log2_of(std::int64_t power) { return std::countr_zero(unsigned_of(power)); }

bool aligned(const void* data, std::int64_t row_bytes, std::uint64_t to) {
  return reinterpret_cast<std::uintptr_t>(data) % to == 0 && unsigned_of(row_bytes) % to == 0;
}

bool one_row_tiles(const quantize_call& call) { return call.grid.tile_rows == 1; }

/// 1 x 16 to 1 x 256; 16 x 16 to 128 x 128; 16 x 1 to 128 x 1.
bool has_tiles(const quantize_call& call) {
  const std::int64_t rows = call.grid.tile_rows, cols = call.grid.tile_cols;
  const auto power = [](std::int64_t n, std::int64_t most) {
    return n >= 16 && n <= most && std::has_single_bit(unsigned_of(n));
  };
  if (rows == 1) return power(cols, 256);
  return power(rows, 128) && (cols == 1 || cols == rows);
}

bool has_views(const quantize_call& call) {
  const quantize_outputs& o = call.outputs;
  return call.in.col_stride == 1 && call.in.cols <= std::int64_t{1} << 31 &&
         (o.codes.data == nullptr || o.codes.col_stride == 1) &&
         (o.codes_transposed.data == nullptr || o.codes_transposed.col_stride == 1) &&
         aligned(call.multipliers.data, 0, 4) &&
         (call.scale_format == format_id::e8m0 ||
          (aligned(o.scales.data, 0, 4) && aligned(o.scales_transposed.data, 0, 4)));
}

/// Whether the definition must round: what neither the FP8 conversion nor drawn_cast does.
bool only_the_definition(const quantize_call& call) {
  const cast_rule& cast = call.cast;
  if (cast.on_nan != nan_policy::canonical) return true;
  const bool bounded = call.scale.upper_bound == numerics::binary32::inf &&
                       numerics::bounds_elements(call.scale.math) &&
                       call.multipliers.data == nullptr;
  const bool saturates = cast.on_overflow == overflow::saturate;
  if (cast.round == rounding::nearest_even) {
    return !bounded && (!saturates || call.scale.math == scale_math::div);
  }
  const bool whole_blocks = call.random.offset % 16 == 0 && call.pitch % 16 == 0;
  return !saturates || !one_row_tiles(call) || call.scale.math == scale_math::div || !bounded ||
         !whole_blocks;
}

/// log2 of the threads along a row. Tiles of one row: as many as store a sector of 32 bytes of
/// scales side by side, at most 2048 elements.
int lanes_of(const quantize_call& call) {
  if (!one_row_tiles(call) || call.outputs.codes_transposed.data != nullptr) return 4;
  const int tile = log2_of(call.grid.tile_cols);
  const int whole_row = std::bit_width(unsigned_of((call.in.cols + strip - 1) / strip) - 1);
  const int sector = call.scale_format == format_id::e8m0 ? std::min(tile + 2, 8) : tile;
  return std::clamp(whole_row, std::max(4, tile - 3), std::max(4, sector));
}

patch_task task_of(const quantize_call& call, int lanes) {
  const const_matrix_view& in = call.in;
  const quantize_outputs& o = call.outputs;
  const std::int64_t in_row = in.rows > 1 ? in.row_stride * storage_bytes(in.format) : 0;
  const std::int64_t codes_row = in.rows > 1 ? o.codes.row_stride : 0;
  const std::int64_t transposed_row = in.cols > 1 ? o.codes_transposed.row_stride : 0;
  patch_task t{};
  t.in = static_cast<const std::byte*>(in.data);
  t.codes = static_cast<std::byte*>(o.codes.data);
  t.codes_transposed = static_cast<std::byte*>(o.codes_transposed.data);
  t.scales = static_cast<std::byte*>(o.scales.data);
  t.scales_transposed = static_cast<std::byte*>(o.scales_transposed.data);
  t.multipliers = static_cast<const std::byte*>(call.multipliers.data);
  t.in_row_bytes = unsigned_of(in_row);
  t.codes_row_bytes = unsigned_of(codes_row);
  t.transposed_row_bytes = unsigned_of(transposed_row);
  const auto width = unsigned_of(storage_bytes(call.scale_format));
  t.scales_row_bytes = unsigned_of(o.scales.row_stride) * width;
  t.scales_col_bytes = unsigned_of(o.scales.col_stride) * width;
  t.scales_transposed_row_bytes = unsigned_of(o.scales_transposed.row_stride) * width;
  t.scales_transposed_col_bytes = unsigned_of(o.scales_transposed.col_stride) * width;
  t.multipliers_row_bytes = unsigned_of(call.multipliers.row_stride) * 4;
  t.multipliers_col_bytes = unsigned_of(call.multipliers.col_stride) * 4;
  t.saturates = call.cast.on_overflow == overflow::saturate;
  t.byte_scales = call.scale_format == format_id::e8m0;
  t.rows = unsigned_of(in.rows);
  t.cols = static_cast<std::uint32_t>(in.cols);
  t.tile_rows = log2_of(call.grid.tile_rows);
  t.tile_cols = log2_of(call.grid.tile_cols);
  t.lanes = lanes;
  const auto block_cols = unsigned_of(std::int64_t{strip} << t.lanes);
  t.col_blocks = static_cast<std::uint32_t>((unsigned_of(in.cols) + block_cols - 1) / block_cols);
  t.aligned =
      aligned(in.data, in_row, 16) && aligned(o.codes.data, codes_row, 8) && in.cols % strip == 0;
  t.aligned_transposed = aligned(o.codes_transposed.data, transposed_row, 16);
  t.by_definition = only_the_definition(call);
  t.scale = call.scale;
  t.cast = call.cast;
  t.random = source_of(call.random);
  t.index = call.random.offset;
  t.pitch = call.pitch;
  t.skip = call.skip_if_nonzero;
  return t;
}

/// Whether the block kernels have the call, which is not empty.
bool has_blocks(const quantize_call& call) {
  if (call.outputs.statistics != nullptr || !has_tiles(call) || !has_views(call)) return false;
  const patch_task t = task_of(call, lanes_of(call));
  if (t.codes_transposed != nullptr && t.tile_cols > 7) return false;
  return block_count(t) <= 0x7FFFFFFF;
}

/// log2 of the threads that hold a row: its strips are at most strips_a_thread to each, or it goes
/// through a block in parts.
int row_lanes_of(const quantize_call& call) {
  constexpr int least = 2;
  const auto strips = unsigned_of((call.in.cols + strip - 1) / strip);
  const int threads = std::bit_width((strips + strips_a_thread - 1) / strips_a_thread - 1);
  return std::clamp(threads, least, std::countr_zero(unsigned_of(block_threads)));
}

patch_task row_task_of(const quantize_call& call) {
  patch_task t = task_of(call, row_lanes_of(call));
  t.by_definition |= call.cast.round != rounding::nearest_even;
  return t;
}

/// Whether the row kernels have the call, which is not empty.
bool has_rows(const quantize_call& call) {
  constexpr std::int64_t most_cols = std::int64_t{1} << 18;  // what a block reads twice from caches
  const quantize_outputs& o = call.outputs;
  return call.grid.tile_rows == 1 && call.grid.cols == 1 && call.in.cols <= most_cols &&
         o.statistics == nullptr && o.codes.data != nullptr && o.codes_transposed.data == nullptr &&
         has_views(call) && row_block_count(row_task_of(call)) <= 0x7FFFFFFF;
}

/// A call with one scale, as one whose blocks of 128 x 128 have it in common: where rows are few
/// and without gaps, of rows of 2048 elements. Scales are not stored.
quantize_call whole_call(const quantize_call& call) {
  constexpr std::int64_t side = 128, width = 2048;
  quantize_call whole = call;
  whole.outputs.scales = whole.outputs.scales_transposed = {};
  whole.grid.tile_rows = whole.grid.tile_cols = side;
  const std::int64_t elements = call.in.rows * call.in.cols;
  const auto is_dense = [&](const const_matrix_view& v) {
    return v.rows == 1 || v.row_stride == v.cols;
  };
  if (call.in.rows < side && elements % width == 0 && is_dense(call.in) &&
      is_dense(call.outputs.codes) && call.outputs.codes_transposed.data == nullptr &&
      call.cast.round == rounding::nearest_even) {
    const auto reshape = [&](auto& v) {
      v.rows = elements / width;
      v.cols = v.row_stride = width;
    };
    reshape(whole.in);
    reshape(whole.outputs.codes);
  }
  return whole;
}

patch_task whole_task_of(const quantize_call& call) {
  patch_task t = task_of(whole_call(call), 4);
  t.by_definition |= call.cast.round != rounding::nearest_even;
  return t;
}

/// Whether the block kernels have the call, which is not empty, once its one scale is known.
bool has_one_scale(const quantize_call& call) {
  return call.grid.rows == 1 && call.grid.cols == 1 && call.outputs.statistics == nullptr &&
         has_views(call) && block_count(whole_task_of(call)) <= 0x7FFFFFFF;
}

/// Rows, columns or squares, as whole extents may be any of them.
bool are_tiled_alike(const quantize_call& a, const quantize_call& b) {
  return one_row_tiles(a) == one_row_tiles(b) &&
         (one_row_tiles(a) || (a.grid.tile_cols == 1) == (b.grid.tile_cols == 1));
}

bool is_empty(const quantize_call& call) { return call.in.rows == 0 || call.in.cols == 0; }

}  // namespace

bool has_patches(const quantize_call& call) {
  return !is_empty(call) && (has_blocks(call) || has_rows(call));
}

bool try_launch_patches(const quantize_call& call, void* stream) {
  if (!has_patches(call)) return false;
  const auto s = static_cast<cudaStream_t>(stream);
  if (has_blocks(call)) {
    launch_block_tiles(task_of(call, lanes_of(call)), call.in.format, call.to, s);
  } else {
    launch_row_tiles(row_task_of(call), call.in.format, call.to, s);
  }
  return true;
}

bool has_whole_tensor(const quantize_call& call) { return !is_empty(call) && has_one_scale(call); }

void launch_whole_amax(const quantize_call& call, numerics::tile_amax* amax, void* stream) {
  launch_tensor_amax(whole_task_of(call), call.in.format, amax, static_cast<cudaStream_t>(stream));
}

void launch_whole_tensor(const quantize_call& call, const numerics::tile_scale* scale,
                         void* stream) {
  launch_block_tiles(whole_task_of(call), call.in.format, call.to,
                     static_cast<cudaStream_t>(stream), scale);
}

list_kernel list_kernel_of(std::span<const quantize_call> calls) {
  bool blocks = true, rows = true, tensors = true;
  const quantize_call* first = nullptr;
  for (const quantize_call& call : calls) {
    if (is_empty(call)) continue;
    if (first == nullptr) first = &call;
    blocks = blocks && has_blocks(call) && are_tiled_alike(call, *first);
    rows = rows && has_rows(call);
    tensors = tensors && has_one_scale(call);
  }
  if (first == nullptr) return list_kernel::none;
  if (blocks) return list_kernel::blocks;
  return rows ? list_kernel::rows : tensors ? list_kernel::tensors : list_kernel::none;
}

list_tables list_tables_of(std::span<const quantize_call> calls, list_kernel kernel) {
  list_tables tables;
  for (const quantize_call& call : calls) {
    if (is_empty(call)) continue;
    const bool rows = kernel == list_kernel::rows;
    list_task task{rows                             ? row_task_of(call)
                   : kernel == list_kernel::tensors ? whole_task_of(call)
                                                    : task_of(call, lanes_of(call)),
                   0};
    tables.given &= call.multipliers.data != nullptr;
    const std::uint64_t blocks = rows ? row_block_count(task.patches) : block_count(task.patches);
    // The kernel's cast is for one maths; given multipliers make it te.
    if (tables.tasks.empty()) tables.divided = task.patches.scale.math == scale_math::div;
    if ((task.patches.scale.math == scale_math::div) != tables.divided ||
        call.cast.round != rounding::nearest_even) {
      task.patches.by_definition = true;
    }
    task.first_block = static_cast<std::uint32_t>(tables.tensor_of_block.size());
    tables.transposed |= call.outputs.codes_transposed.data != nullptr;
    tables.tensor_of_block.insert(tables.tensor_of_block.end(), blocks,
                                  static_cast<std::uint32_t>(tables.tasks.size()));
    tables.tasks.push_back(task);
    if (tables.tensor_of_block.size() > 0x7FFFFFFF) {
      throw invalid_argument("items: more than 2^31 - 1 blocks of 16384 elements");
    }
  }
  return tables;
}

namespace {

/// log2 of the strips along a row of a warp's patch, which end where the matrix does, four to a
/// lane; 0 where they cannot.
int counted_lanes(const quantize_call& call) {
  const int factor = std::countr_zero(unsigned_of(call.in.cols)) - log2_of(strip);
  const int least = one_row_tiles(call) ? std::max(4, log2_of(call.grid.tile_cols) - 3) : 4;
  const int most = one_row_tiles(call) ? 7 : 4;
  return factor < least ? 0 : std::min(factor, most);
}

struct counted_task {
  patch_task patches;
  std::uint64_t nodes;

  explicit counted_task(const quantize_call& call)
      : patches(task_of(call, counted_lanes(call))),
        nodes(patches.rows * (patches.col_blocks >> counted_group(patches))) {}
};

}  // namespace

bool has_counted_patches(const quantize_call& call) {
  if (call.outputs.statistics == nullptr || !has_tiles(call) || !has_views(call)) return false;
  if (call.in.rows == 0 || call.in.cols == 0 || call.grid.tile_cols == 1) return false;
  if (call.outputs.codes_transposed.data != nullptr || call.cast.round != rounding::nearest_even ||
      call.scale.math == scale_math::div || call.scale.upper_bound != numerics::binary32::inf ||
      !numerics::bounds_elements(call.scale.math) || call.multipliers.data != nullptr ||
      counted_lanes(call) == 0) {
    return false;
  }
  const counted_task task(call);
  return task.patches.aligned && !task.patches.by_definition &&
         block_count(task.patches) <= 0x7FFFFFFF;
}

std::size_t counted_workspace(const quantize_call& call) {
  const counted_task task(call);
  return statistics_bytes(task.nodes, most_counted_blocks(task.patches));
}

void launch_counted_patches(const quantize_call& call, std::byte* workspace, void* stream) {
  const counted_task task(call);
  const statistics_parts parts = parts_at(workspace, task.nodes, counted_blocks(task.patches));
  const auto s = static_cast<cudaStream_t>(stream);
  launch_counted_tiles(task.patches, call.in.format, call.to, parts, s);
  launch_total(parts, task.patches.rows * task.patches.cols, call.outputs.statistics,
               call.skip_if_nonzero, s);
}

}  // namespace samebits::cuda
