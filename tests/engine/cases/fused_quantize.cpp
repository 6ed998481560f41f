// Fused operators that quantize their result, and the same in two calls.
#include "engine/cases/operations.hpp"

#include <cstddef>
#include <vector>

#include "engine/cases/quantize.hpp"
#include "engine/cases/torch_numbers.hpp"
#include "samebits/operators.hpp"

namespace samebits::support {
namespace {

struct gated_quantize_case {
  quantize_case tiles;  ///< of gate; up has its layout
  function f = function::silu;
};
struct norm_quantize_case {
  quantize_case tiles;  ///< of the norm; rows and added rows have its layout
  bool rms = false, adds = false, weight = false, bias = false;
  std::int64_t offset = 0;
};

constexpr function functions[] = {function::silu, function::gelu, function::gelu_tanh};
constexpr function_rule rule = function_rule::torch_2_11;

void describe(norm_quantize_case& c, case_fields& fields) {
  fields.show("RMSNorm", c.rms);
  fields.reset("of a sum", c.adds, false, "weight", c.weight, false, "bias", c.bias, false,
               "offset", c.offset, 0);
  describe_case(c.tiles, fields);
}

void describe(gated_quantize_case& c, case_fields& fields) {
  fields.show("gated", c.f);
  describe_case(c.tiles, fields);
}

/// Half of them what one kernel computes.
quantize_case draw_tiles(const word_source& next) {
  quantize_case q = draw_quantize_case(next);
  if (below(2, next) == 0) {
    q.options.tile = {1, 128};
    q.options.rounding = rounding::nearest_even;
    q.wanted = {};
    lay_out(q, below(9, next), 8 * below(below(2, next) == 0 ? 20 : 300, next), next);
  }
  return q;
}

gated_quantize_case draw_gated(const word_source& next) {
  const quantize_case tiles = draw_tiles(next);
  return {tiles, one_of(functions, next)};
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

norm_quantize_case draw_norm(const word_source& next) {
  norm_quantize_case c{draw_tiles(next)};
  for (bool* flag : {&c.rms, &c.adds, &c.weight, &c.bias}) *flag = below(2, next) == 0;
  c.offset = below(3, next);
  return c;
}

constexpr std::size_t norm_buffers = 6;  ///< behind those of the quantization

/// The buffers of a quantization, and added, weight, bias, sum, mean, rstd.
buffers memory_of_norm(const norm_quantize_case& c) {
  buffers all = quantizations().memory(c.tiles);
  quantize_case other = c.tiles;
  const auto given = [&](const char* name, bool wanted, const array_layout& layout) {
    ++other.content;
    other.in = wanted ? layout : array_layout{};
    all.push_back({name, buffer_use::given, matrix_of(other)});
  };
  const array_layout &rows = c.tiles.in, parameters = dense_layout(1, rows.cols);
  given("added", c.adds, rows);
  given("weight", c.weight, parameters);
  given("bias", c.bias && !c.rms, parameters);
  const array_layout statistics = {rows.rows, 1, 3, 1, 0};
  all.push_back(result_buffer("sum", c.tiles.from, dense_layout(rows.rows, rows.cols), c.adds));
  all.push_back(result_buffer("mean", format_id::fp32, statistics, !c.rms));
  all.push_back(result_buffer("rstd", format_id::fp32, statistics));
  return all;
}

/// The operands and results of a norm; none for what the case lacks.
struct norm_views {
  matrix_view in, added = {}, weight = {}, bias = {}, sum = {}, mean = {}, rstd;
  layer_norm_options options;

  norm_views(const norm_quantize_case& c, const call_site& site)
      : in(site.views[quantize_buffers::in]),
        rstd(site.views.back()),
        options{rule, 1e-3, c.offset} {
    const matrix_view* const v = &site.views[site.views.size() - norm_buffers];
    if (c.adds) added = v[0], sum = v[3];
    if (c.weight) weight = v[1];
    if (c.bias && !c.rms) bias = v[2];
    if (!c.rms) mean = v[4];
  }
};

returned_values norm_on(const norm_quantize_case& c, const call_site& site) {
  const executor where = site.target.where(c.tiles.threads);
  const norm_views v(c, site);
  const quantize_outputs outputs = outputs_of(c.tiles, site);
  const quantize_options options = options_of(c.tiles, site);
  site.target.enqueue([&] {
    if (c.rms) {
      rms_norm_quantize(v.in, v.added, v.weight, v.sum, v.rstd, outputs, options, v.options, where);
    } else {
      layer_norm_quantize(v.in, v.added, v.weight, v.bias, v.sum, v.mean, v.rstd, outputs, options,
                          v.options, where);
    }
  });
  return {};
}

/// A dense matrix in host memory, of the shape and format of another.
struct host_matrix {
  std::vector<std::byte> memory;
  matrix_view view;

  explicit host_matrix(const matrix_view& like)
      : memory(static_cast<std::size_t>(like.rows * like.cols * storage_bytes(like.format))),
        view(view_of_codes(like.format, memory.data(), like.rows, like.cols)) {}
};

/// What a norm, or one of a sum, and quantize() leave one after the other.
returned_values norm_then_quantized(const norm_quantize_case& c, const call_site& site) {
  const norm_views v(c, site);
  const host_matrix between(v.in);
  const matrix_view& out = between.view;
  const executor where{"reference", 1};
  if (c.rms && c.adds) {
    add_rms_norm(v.in, v.added, v.weight, v.sum, out, v.rstd, v.options, where);
  } else if (c.rms) {
    rms_norm(v.in, v.weight, out, v.rstd, v.options, where);
  } else if (c.adds) {
    add_layer_norm(v.in, v.added, v.weight, v.bias, v.sum, out, v.mean, v.rstd, v.options, where);
  } else {
    layer_norm(v.in, v.weight, v.bias, out, v.mean, v.rstd, v.options, where);
  }
  quantize(out, outputs_of(c.tiles, site), options_of(c.tiles, site), where);
  return {};
}

/// What gated() and quantize() leave one after the other.
returned_values gated_then_quantized(const gated_quantize_case& c, const call_site& site) {
  const matrix_view& gate = site.views[quantize_buffers::in];
  const host_matrix between(gate);
  const executor where{"reference", 1};
  gated(c.f, gate, site.views.back(), between.view, rule, where);
  quantize(between.view, outputs_of(c.tiles, site), options_of(c.tiles, site), where);
  return {};
}

}  // namespace

array_operation gated_quantize_operation() {
  return judged("two calls", gated_then_quantized,
                make_operation<gated_quantize_case>("gated and quantized",
                                                    {draw_gated, memory_of_gated, gated_on}, 256));
}

array_operation norm_quantize_operation() {
  return judged("two or three calls", norm_then_quantized,
                make_operation<norm_quantize_case>("norms and quantized",
                                                   {draw_norm, memory_of_norm, norm_on}, 256));
}

}  // namespace samebits::support
