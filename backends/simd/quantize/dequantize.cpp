// Dequantization on the SIMD backends, by the kernels of conversions and tensor lists: a
// segment of a row is converted to binary32, multiplied tile by tile, and converted to the result's
// format. Compiled without instruction set flags.
#include <algorithm>
#include <array>

#include "backends/reference/reference.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"
#include "backends/threads/parts.hpp"

namespace samebits::backends {
namespace {

constexpr std::int64_t segment_elements =
    1024;  // binary32 numbers of a segment stay in the L1 cache

/// `count` elements of a row from (row, col) on, as a matrix with one row.
template <class View, class Byte>
View segment_of(View v, Byte* first, std::int64_t row, std::int64_t col, std::int64_t count) {
  const std::int64_t bytes = spec_of(v.format).storage_bits / 8;
  v.data = first + (row * v.row_stride + col * v.col_stride) * bytes;
  v.rows = 1;
  v.cols = count;
  return v;
}

/// Multiplies the binary32 numbers of a segment by the scales of their tiles.
void rescale(const list_lanes_kernel& lanes, const dequantize_call& call, std::int64_t row,
             std::int64_t col, std::int64_t count, const numerics::tensor_level& tensor,
             std::uint32_t* values) {
  const tile_grid& g = call.grid;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t tile = (col + done) / g.tile_cols;
    const std::int64_t n = std::min(count - done, (tile + 1) * g.tile_cols - (col + done));
    const std::uint32_t s = scale_at(call.scales, row / g.tile_rows, tile);
    lanes.scale(reinterpret_cast<std::byte*>(values + done), n,
                numerics::full_scale(call.level.scale, tensor, s));
    done += n;
  }
}

}  // namespace

void dequantize_by_lanes(const lane_kernels& by, const dequantize_call& call,
                         const executor& where) {
  const std::int64_t cols = call.codes.cols;
  const auto* const codes = static_cast<const std::byte*>(call.codes.data);
  auto* const out = static_cast<std::byte*>(call.out.data);
  const numerics::tensor_level tensor = tensor_level_of(call);
  for_each_part(call.codes.rows * cols, where.threads, [&](element_range range) {
    const ieee_control_register ieee;
    std::array<std::uint32_t, segment_elements> values;
    for (std::int64_t i = range.begin; i < range.end;) {
      const std::int64_t row = i / cols;
      const std::int64_t col = i % cols;
      const std::int64_t n = std::min({segment_elements, cols - col, range.end - i});
      const matrix_view between = {values.data(), format_id::fp32, 1, n, n};
      by.convert({segment_of(call.codes, codes, row, col, n), between, {}, {}}, {0, n});
      rescale(by.lists, call, row, col, n, tensor, values.data());
      by.convert({between, segment_of(call.out, out, row, col, n), {}, {}}, {0, n});
      i += n;
    }
  });
}

}  // namespace samebits::backends
