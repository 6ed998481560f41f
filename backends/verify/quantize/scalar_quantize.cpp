// The oracle for the reference backend's quantization: the definition, one tile and one element at
// a time.
#include <algorithm>
#include <cstring>

#include "backends/verify/codes.hpp"
#include "backends/verify/verify.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/scalar.hpp"

namespace samebits::backends::verification {
namespace {

std::uint64_t code_at(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  return load(static_cast<const std::byte*>(v.data) + byte_offset(v, row, col),
              static_cast<std::size_t>(storage_bytes(v.format)));
}

void store(const matrix_view& v, std::int64_t row, std::int64_t col, std::uint64_t code) {
  if (v.data == nullptr) return;
  std::memcpy(static_cast<std::byte*>(v.data) + byte_offset(v, row, col), &code,
              static_cast<std::size_t>(storage_bytes(v.format)));
}

/// An element as binary32 bits. Exact, because binary32 contains all source formats.
std::uint32_t element(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  return static_cast<std::uint32_t>(
      convert_code(v.format, format_id::fp32, code_at(v, row, col)).code);
}

std::uint64_t cast(const quantize_call& call, std::int64_t row, std::int64_t col,
                   const numerics::tile_scale& scale) {
  const std::uint64_t index = call.random.offset + static_cast<std::uint64_t>(row) * call.pitch +
                              static_cast<std::uint64_t>(col);
  random_bits random{0, call.random.bits};
  if (call.cast.rounding == rounding::stochastic) {
    random.value = random_word(call.random.seed, call.random.stream, index, call.random.bits);
  }
  const std::uint32_t y = numerics::scaled(call.scale.rule, scale, element(call.in, row, col));
  return convert_code(format_id::fp32, call.to, y, call.cast, random).code;
}

void quantize_tile(const quantize_call& call, std::int64_t tile_row, std::int64_t tile_col) {
  const std::int64_t row = tile_row * call.grid.tile_rows;
  const std::int64_t col = tile_col * call.grid.tile_cols;
  const std::int64_t row_end = std::min(call.in.rows, row + call.grid.tile_rows);
  const std::int64_t col_end = std::min(call.in.cols, col + call.grid.tile_cols);
  numerics::tile_amax amax = numerics::no_amax;
  for (std::int64_t r = row; r < row_end; ++r) {
    for (std::int64_t c = col; c < col_end; ++c) {
      amax = numerics::combined(
          amax, numerics::amax_contribution(call.scale.nonfinite, element(call.in, r, c)));
    }
  }
  const numerics::tile_scale scale = numerics::scale_of(spec_of(call.to), call.scale, amax);
  store(call.outputs.scales, tile_row, tile_col, scale.dequantization_scale);
  store(call.outputs.scales_transposed, tile_col, tile_row, scale.dequantization_scale);
  for (std::int64_t r = row; r < row_end; ++r) {
    for (std::int64_t c = col; c < col_end; ++c) {
      const std::uint64_t code = cast(call, r, c, scale);
      store(call.outputs.codes, r, c, code);
      store(call.outputs.codes_transposed, c, r, code);
    }
  }
}

}  // namespace

void scalar_quantize(const quantize_call& call, const executor&) {
  for (std::int64_t row = 0; row < call.grid.rows; ++row) {
    for (std::int64_t col = 0; col < call.grid.cols; ++col) quantize_tile(call, row, col);
  }
}

void scalar_dequantize(const dequantize_call& call, const executor&) {
  for (std::int64_t row = 0; row < call.codes.rows; ++row) {
    for (std::int64_t col = 0; col < call.codes.cols; ++col) {
      const auto scale = static_cast<std::uint32_t>(
          code_at(call.scales, row / call.grid.tile_rows, col / call.grid.tile_cols));
      const std::uint32_t value =
          numerics::rescaled(spec_of(call.codes.format),
                             static_cast<std::uint32_t>(code_at(call.codes, row, col)), scale);
      store(call.out, row, col, convert_code(format_id::fp32, call.out.format, value).code);
    }
  }
}

}  // namespace samebits::backends::verification
