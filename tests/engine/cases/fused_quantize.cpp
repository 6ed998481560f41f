// Fused operators that quantize their result, and the same in two calls.
#include "engine/cases/fused_quantize.hpp"

#include <cstddef>
#include <ostream>
#include <vector>

namespace samebits::support {
namespace {

constexpr function functions[] = {function::silu, function::gelu, function::gelu_tanh};
constexpr function_rule rule = function_rule::torch_2_11;

gated_quantize_case draw_gated(const word_source& next) {
  gated_quantize_case c{draw_quantize_case(next), one_of(functions, next)};
  quantize_case& q = c.tiles;
  if (below(2, next) == 0) {  // what one kernel computes
    q.options.tile = {1, 128};
    q.options.rounding = rounding::nearest_even;
    q.wanted = {};
    lay_out(q, below(9, next), 8 * below(below(2, next) == 0 ? 20 : 300, next), next);
  }
  return c;
}

std::vector<gated_quantize_case> simpler_gated(const gated_quantize_case& c) {
  std::vector<gated_quantize_case> all;
  for (const quantize_case& q : simpler_quantizations(c.tiles)) all.push_back({q, c.f});
  return all;
}

/// The buffers of a quantization, and `up`.
buffers memory_of_gated(const gated_quantize_case& c) {
  buffers all = quantizations().memory(c.tiles);
  quantize_case other = c.tiles;
  ++other.content;
  all.push_back({"up", buffer_use::given, matrix_of(other)});
  return all;
}

returned_values gated_on(const gated_quantize_case& c, const call_site& site) {
  const executor where = site.target.where(c.tiles.threads);
  const quantize_outputs outputs = outputs_of(c.tiles, site);
  const quantize_options options = options_of(c.tiles, site);
  site.target.enqueue([&] {
    gated_quantize(c.f, site.views[quantize_buffers::in], site.views.back(), outputs, options, rule,
                   where);
  });
  return {};
}

}  // namespace

returned_values gated_then_quantized(const gated_quantize_case& c, const call_site& site) {
  const matrix_view& gate = site.views[quantize_buffers::in];
  std::vector<std::byte> memory(
      static_cast<std::size_t>(gate.rows * gate.cols * storage_bytes(gate.format)));
  const matrix_view between = view_of_codes(gate.format, memory.data(), gate.rows, gate.cols);
  const executor where{"reference", 1};
  gated(c.f, gate, site.views.back(), between, rule, where);
  quantize(between, outputs_of(c.tiles, site), options_of(c.tiles, site), where);
  return {};
}

operation_of<gated_quantize_case> gated_quantizations() {
  return {draw_gated, memory_of_gated, gated_on, simpler_gated};
}

std::ostream& operator<<(std::ostream& out, const gated_quantize_case& c) {
  return out << name(c.f) << " gated, " << c.tiles;
}

}  // namespace samebits::support
