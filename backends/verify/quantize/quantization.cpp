// Quantizations and dequantizations as compared calls: implementation.
#include "backends/verify/quantize/quantization.hpp"

#include <string>

#include "samebits/core/cat.hpp"

namespace samebits::backends::verification {
namespace {

constexpr const char* output_names[output_count] = {"code", "scale", "transposed code",
                                                    "transposed scale"};

format_id format_of(std::size_t output, format_id to) {
  return output == scales || output == scales_transposed ? format_id::fp32 : to;
}

std::string tile_text(const tile_shape& tile) {
  const auto size = [](std::int64_t n) { return n == 0 ? std::string("all") : std::to_string(n); };
  return "tile " + size(tile.rows) + " x " + size(tile.cols);
}

std::string text_of(const quantization& q) {
  const std::string text =
      detail::cat(tile_text(all_tiles()[static_cast<std::size_t>(q.tile)]), " ", q.scale.rule, " ",
                  q.scale.nonfinite, " ", q.cast.rounding, " ", q.cast.overflow);
  if (q.cast.rounding != rounding::stochastic) return text;
  return detail::cat(text, ", seed ", q.random.seed, ", stream ", q.random.stream, ", offset ",
                     q.random.offset, ", K = ", q.random.bits);
}

/// What the texts and headings of a call say.
void describe(checked_call& call, format_id from, format_id to, int tile, std::string rule) {
  call.covers.sources.set(static_cast<std::size_t>(from));
  call.covers.targets.set(static_cast<std::size_t>(to));
  call.covers.tiles.set(static_cast<std::size_t>(tile));
  call.text = [results = call.results, rule](const difference& d) {
    const std::string what = results[d.result].name;
    if (d.got.empty()) return what + " differ; " + rule;
    return detail::cat(what, " [", d.row, ", ", d.col, "] is ", d.got, ", expected ", d.expected,
                       "; ", rule);
  };
  call.rule = std::move(rule);
}

}  // namespace

const std::array<tile_shape, tile_count>& all_tiles() {
  static const std::array<tile_shape, tile_count> tiles = [] {
    std::array<tile_shape, tile_count> made = {{{1, 0}, {0, 1}, {0, 0}}};
    std::size_t i = 3;
    for (const std::int64_t g : {16, 32, 64, 128, 256}) {
      for (const tile_shape& tile : {tile_shape{1, g}, {g, 1}, {g, g}}) made[i++] = tile;
    }
    return made;
  }();
  return tiles;
}

checked_call call_of(const quantization& q, format_id from) {
  const tile_grid grid =
      grid_of(q.in.rows, q.in.cols, all_tiles()[static_cast<std::size_t>(q.tile)]);
  const auto make = [q, from, grid](const call_memory& m) {
    const auto out = [&](output i) {
      return view_at<matrix_view>(m.out[i], format_of(i, q.to), q.out[i], m.space);
    };
    auto* const counts = reinterpret_cast<quantize_statistics*>(m.out[output_count]);
    return quantize_call{view_at<const_matrix_view>(m.in[0], from, q.in, m.space),
                         {out(codes), out(scales), out(codes_transposed), out(scales_transposed),
                          q.counts ? counts : nullptr},
                         q.to,
                         grid,
                         q.scale,
                         format_id::fp32,
                         {},
                         q.cast,
                         q.random,
                         q.random.pitch.value_or(static_cast<std::uint64_t>(q.in.cols))};
  };
  checked_call call = make_checked_call(&backend::quantize, make);
  for (std::size_t i = 0; i < output_count; ++i) {
    const auto width = static_cast<std::size_t>(storage_bytes(format_of(i, q.to)));
    call.results.push_back({output_names[i], width, q.out[i]});
  }
  if (q.counts) {
    call.results.push_back({"statistics", sizeof(quantize_statistics), placement::dense(1, 1)});
  }
  call.covers.scale_rules.set(static_cast<std::size_t>(q.scale.rule));
  describe(call, from, q.to, q.tile, text_of(q));
  return call;
}

checked_call call_of(const dequantization& d) {
  const tile_shape& tile = all_tiles()[static_cast<std::size_t>(d.tile)];
  const tile_grid grid = grid_of(d.rows, d.cols, tile);
  const placement elements = placement::dense(d.rows, d.cols);
  const auto make = [=](const call_memory& m) {
    return dequantize_call{
        view_at<const_matrix_view>(m.in[0], d.from, elements, m.space),
        view_at<const_matrix_view>(m.in[1], format_id::fp32, placement::dense(grid.rows, grid.cols),
                                   m.space),
        view_at<matrix_view>(m.out[0], d.to, elements, m.space), grid};
  };
  checked_call call = make_checked_call(&backend::dequantize, make);
  call.results = {{"value", static_cast<std::size_t>(storage_bytes(d.to)), elements}};
  describe(call, d.from, d.to, d.tile, std::string(name(d.from)) + " " + tile_text(tile));
  return call;
}

}  // namespace samebits::backends::verification
