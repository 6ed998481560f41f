// Reference quantization: applies the definition to one tile after another, then to one element
// after another.
#include "backends/dispatch/calls/quantize.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/dispatch/element.hpp"
#include "backends/reference/cells.hpp"
#include "backends/reference/quantize_statistics.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test/self_test.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/quantize/four_over_six.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::backends {
namespace {

std::uint32_t load(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  std::uint32_t loaded = 0;
  with_code_of(v.format, [&]<class Code>(Code code) {
    std::memcpy(&code, element_at(v, row, col), sizeof code);
    loaded = code;
  });
  return loaded;
}

void store(const matrix_view& v, std::int64_t row, std::int64_t col, std::uint32_t stored) {
  with_code_of(v.format, [&]<class Code>(Code code) {
    code = static_cast<Code>(stored);
    std::memcpy(element_at(v, row, col), &code, sizeof code);
  });
}

/// Calls f(row, col, number) for elements [begin, end) of a matrix in row-major order. `number`
/// counts from 0.
template <class Function>
void for_each_element(std::int64_t cols, element_range range, const Function& f) {
  if (range.begin == range.end) return;
  std::int64_t row = range.begin / cols;
  std::int64_t col = range.begin % cols;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    f(row, col, static_cast<std::size_t>(i - range.begin));
    if (++col == cols) {
      col = 0;
      ++row;
    }
  }
}

/// The amax of the elements [row, row + rows) x [col, col + cols).
numerics::tile_amax amax_of(const quantize_call& call, std::int64_t row, std::int64_t rows,
                            std::int64_t col, std::int64_t cols) {
  numerics::tile_amax amax = numerics::no_amax;
  for (std::int64_t r = row; r < row + rows; ++r) {
    for (std::int64_t c = col; c < col + cols; ++c) {
      amax = numerics::combined(
          amax, numerics::amax_contribution(call.scale.nonfinite, binary32_of(call.in, r, c)));
    }
  }
  return amax;
}

numerics::tile_scale scale_of_tile(const quantize_call& call, std::int64_t row, std::int64_t col) {
  if (call.inverse_scales.data != nullptr) {
    return numerics::scale_of_inverse(load(call.inverse_scales, row, col));
  }
  const tile_grid& g = call.grid;
  const std::int64_t first_row = row * g.tile_rows;
  const std::int64_t first_col = col * g.tile_cols;
  const std::int64_t rows = std::min(g.tile_rows, call.in.rows - first_row);
  const std::int64_t cols = std::min(g.tile_cols, call.in.cols - first_col);
  const numerics::tile_amax amax = amax_of(call, first_row, rows, first_col, cols);
  const format_spec to = spec_of(call.to);
  if (!is_four_over_six(call.scale.rule)) return numerics::any_scale_of(to, call.scale, amax);
  return numerics::four_over_six_scale<numerics::by_definition>(
      call.scale, to, amax, static_cast<int>(rows), static_cast<int>(cols), g.tile_cols == 1,
      [&](int r, int c) { return binary32_of(call.in, first_row + r, first_col + c); });
}

/// The amax of a matrix, split among threads.
numerics::tile_amax amax_of_matrix(const quantize_call& call, int threads) {
  std::mutex combining;
  numerics::tile_amax amax = numerics::no_amax;
  for_each_part(call.in.rows, threads, [&](element_range rows) {
    const numerics::tile_amax part =
        amax_of(call, rows.begin, rows.end - rows.begin, 0, call.in.cols);
    const std::scoped_lock lock(combining);
    amax = numerics::combined(amax, part);
  });
  return amax;
}

/// Computes the scales of all tiles in row-major order and writes the wanted scale outputs.
void find_scales(const quantize_call& call, int threads, numerics::tile_scale* scales) {
  const tile_grid& g = call.grid;
  const quantize_outputs& o = call.outputs;
  const auto scale_range = [&](element_range range) {
    for_each_element(g.cols, range, [&](std::int64_t row, std::int64_t col, std::size_t i) {
      const numerics::tile_scale s = scale_of_tile(call, row, col);
      scales[range.begin + static_cast<std::int64_t>(i)] = s;
      store_tile_scale(o.scales, row, col, s.dequantization_scale);
      store_tile_scale(o.scales_transposed, col, row, s.dequantization_scale);
    });
  };
  for_each_part(g.rows * g.cols, threads, scale_range,
                items_worth_a_thread(g.tile_rows * g.tile_cols));
}

/// Quantizes elements by known scales.
class element_pass {
 public:
  element_pass(const quantize_call& call, const numerics::tile_scale* scales)
      : call_(call), scales_(scales), to_(spec_of(call.to)) {}

  quantized_element operator()(std::int64_t row, std::int64_t col) const {
    const tile_grid& g = call_.grid;
    const numerics::tile_scale& scale = scales_[row / g.tile_rows * g.cols + col / g.tile_cols];
    const std::uint32_t x = binary32_of(call_.in, row, col);
    const std::uint32_t y = numerics::scaled(call_.scale.rule, scale, x);
    const auto cast = numerics::encode<std::uint32_t>(to_, call_.cast, y, dither(row, col));
    const quantize_outputs& o = call_.outputs;
    if (o.codes.data != nullptr) store(o.codes, row, col, cast.code);
    if (o.codes_transposed.data != nullptr) {
      store(o.codes_transposed, col, row, cast.code);
    }
    if (o.statistics == nullptr) return {};
    const std::uint32_t d =
        numerics::full_scale(call_.scale.rule, call_.scale.tensor, scale.dequantization_scale);
    const auto magnitude = static_cast<std::uint32_t>(numerics::magnitude_mask(to_));
    return {x, y, cast.code & magnitude, numerics::rescaled(to_, cast.code, d), cast.overflow};
  }

 private:
  [[nodiscard]] std::uint32_t dither(std::int64_t row, std::int64_t col) const {
    if (call_.cast.rounding != rounding::stochastic) return 0;
    const random_stream& r = call_.random;
    const std::uint64_t index = random_index(r, call_.pitch, row, col);
    return numerics::align_random<std::uint32_t>(
        numerics::random_word(r.seed, r.stream, index, r.bits), r.bits);
  }

  const quantize_call& call_;
  const numerics::tile_scale* scales_;
  format_spec to_;
};

/// Quantizes the elements of a chunk. If `counts` is set, also collects their partial statistics.
quantize_chunk_statistics quantize_chunk(const element_pass& pass, std::int64_t cols,
                                         element_range chunk, bool counts) {
  constexpr std::int64_t batch = chunk_counter::max_at_once;
  chunk_counter counter;
  std::array<quantized_element, chunk_counter::max_at_once> done;
  for (std::int64_t begin = chunk.begin; begin < chunk.end; begin += batch) {
    const element_range part = {begin, std::min(chunk.end, begin + batch)};
    for_each_element(cols, part, [&](std::int64_t row, std::int64_t col, std::size_t i) {
      done[i] = pass(row, col);
    });
    if (counts) {
      counter.add(std::span(done).first(static_cast<std::size_t>(part.end - part.begin)));
    }
  }
  return counts ? counter.statistics() : quantize_chunk_statistics{};
}

}  // namespace

quantize_call with_tensor_level(const quantize_call& call,
                                const std::function<numerics::tile_amax()>& amax) {
  quantize_call result = call;
  if (!has_two_levels(call.scale.rule)) return result;
  const format_spec to = spec_of(call.to);
  const std::uint32_t stored = call.tensor_scale.data != nullptr
                                   ? load(call.tensor_scale, 0, 0)
                                   : numerics::tensor_scale_of(call.scale.rule, to, amax());
  result.scale.tensor = numerics::tensor_level_of(call.scale.rule, to, stored);
  if (call.outputs.tensor_scale.data != nullptr) {
    store(call.outputs.tensor_scale, 0, 0, stored);
  }
  return result;
}

void reference_quantize(const quantize_call& given, const executor& where) {
  const bool counts = given.outputs.statistics != nullptr;
  if (counts) require_tested(reference);  // all other work is integer arithmetic
  if (given.skip_if_nonzero != nullptr && *given.skip_if_nonzero != 0) return;
  const quantize_call call =
      with_tensor_level(given, [&] { return amax_of_matrix(given, where.threads); });

  constexpr std::int64_t chunk = chunk_counter::chunk_elements;
  const std::int64_t elements = call.in.rows * call.in.cols;
  const std::int64_t chunks = elements / chunk + (elements % chunk != 0 ? 1 : 0);
  std::vector<quantize_chunk_statistics> partial_statistics(
      counts ? static_cast<std::size_t>(chunks) : 0);
  std::unique_ptr<numerics::tile_scale[]> own;
  if (call.scale_room == nullptr) {
    const auto tiles = static_cast<std::size_t>(call.grid.rows * call.grid.cols);
    own = std::make_unique_for_overwrite<numerics::tile_scale[]>(tiles);
  }
  numerics::tile_scale* const scales = own != nullptr ? own.get() : call.scale_room;
  find_scales(call, where.threads, scales);
  const element_pass pass(call, scales);
  for_each_item(chunks, chunk, where.threads, [&](std::int64_t i) {
    const element_range part = {i * chunk, std::min(elements, (i + 1) * chunk)};
    const quantize_chunk_statistics statistics = quantize_chunk(pass, call.in.cols, part, counts);
    if (counts) partial_statistics[static_cast<std::size_t>(i)] = statistics;
  });
  if (counts) *call.outputs.statistics = total(partial_statistics);
}

void store_tile_scale(const matrix_view& v, std::int64_t row, std::int64_t col,
                      std::uint32_t dequantization_scale) {
  if (v.data == nullptr) return;
  store(v, row, col, numerics::scale_code(v.format, dequantization_scale));
}

std::uint32_t binary32_of(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  return numerics::decode<std::uint32_t>(spec_of(v.format), load(v, row, col));
}

numerics::tensor_level tensor_level_of(const dequantize_call& call) {
  if (!has_two_levels(call.level.scale)) return {};
  return numerics::tensor_level_of(call.level.scale, spec_of(call.codes.format),
                                   load(call.level.tensor_scale, 0, 0));
}

void reference_dequantize(const dequantize_call& call, const executor& where) {
  const format_spec from = spec_of(call.codes.format);
  const format_spec to = spec_of(call.out.format);
  const tile_grid& g = call.grid;
  const numerics::tensor_level tensor = tensor_level_of(call);
  for_each_part(call.codes.rows * call.codes.cols, where.threads, [&](element_range range) {
    for_each_element(call.codes.cols, range, [&](std::int64_t row, std::int64_t col, std::size_t) {
      const std::uint32_t s = binary32_of(call.scales, row / g.tile_rows, col / g.tile_cols);
      const std::uint32_t d = numerics::full_scale(call.level.scale, tensor, s);
      const std::uint32_t y = numerics::rescaled(from, load(call.codes, row, col), d);
      store(call.out, row, col, numerics::encode<std::uint32_t>(to, cast_rule{}, y, 0).code);
    });
  });
}

}  // namespace samebits::backends
