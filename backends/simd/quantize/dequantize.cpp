// Dequantization on the SIMD backends, by the kernels of conversions and tensor lists: a
// segment of a row is converted to binary32, multiplied tile by tile, and converted to the result's
// format. Compiled without instruction set flags.
#include <algorithm>
#include <array>

#include "backends/dispatch/element.hpp"
#include "backends/reference/reference.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"
#include "backends/threads/parts.hpp"

namespace samebits::backends {
namespace {

constexpr std::int64_t segment_elements =
    1024;  // binary32 numbers of a segment stay in the L1 cache

/// Multiplies the binary32 numbers of a segment by the scales of their tiles.
void rescale(const list_lanes_kernel& lanes, const dequantize_call& call, std::int64_t row,
             std::int64_t col, std::int64_t count, const numerics::tensor_level& tensor,
             std::uint32_t* values) {
  const tile_grid& g = call.grid;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t tile = (col + done) / g.tile_cols;
    const std::int64_t n = std::min(count - done, (tile + 1) * g.tile_cols - (col + done));
    const std::uint32_t s = binary32_of(call.scales, row / g.tile_rows, tile);
    lanes.scale(reinterpret_cast<std::byte*>(values + done), n,
                numerics::full_scale(call.level.scale, tensor, s));
    done += n;
  }
}

}  // namespace

void dequantize_by_lanes(const lane_kernels& by, const dequantize_call& call,
                         const executor& where) {
  const std::int64_t cols = call.codes.cols;
  const numerics::tensor_level tensor = tensor_level_of(call);
  for_each_part(call.codes.rows * cols, where.threads, [&](element_range range) {
    const ieee_control_register ieee;
    std::array<std::uint32_t, segment_elements> values;
    const auto dequantize = [&](std::int64_t row, std::int64_t col, std::int64_t n) {
      const matrix_view between = {values.data(), format_id::fp32, 1, n, n};
      by.convert({part_of(call.codes, row, col, 1, n), between, {}, {}}, {0, n});
      rescale(by.lists, call, row, col, n, tensor, values.data());
      by.convert({between, part_of(call.out, row, col, 1, n), {}, {}}, {0, n});
    };
    for_each_row_part(cols, range, segment_elements, dequantize);
  });
}

}  // namespace samebits::backends
