// quantize() and dequantize(): check arguments and choose a backend.
#include "backends/dispatch/calls/quantize.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "backends/api/functions/fused_call.hpp"
#include "backends/api/run_call.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits {
namespace backends {
namespace {

bool is_tile(const tile_shape& tile) {
  const auto is_size = [](std::int64_t n) {
    return n == 16 || n == 32 || n == 64 || n == 128 || n == 256;
  };
  if (tile.rows == 0 || tile.cols == 0) {
    return tile.rows >= 0 && tile.rows <= 1 && tile.cols >= 0 && tile.cols <= 1;
  }
  if (tile.rows == 1) return is_size(tile.cols);
  return is_size(tile.rows) && (tile.cols == 1 || tile.cols == tile.rows);
}

/// Number of tiles along an extent.
std::int64_t tiles(std::int64_t extent, std::int64_t tile) {
  return extent / tile + (extent % tile != 0 ? 1 : 0);
}

void check_space(const const_matrix_view& v, const char* which, memory_space space) {
  require(v.space == space, which,
          ": must lie in the same memory as the other views, host or device");
}

constexpr std::array code_formats = {format_id::e4m3, format_id::e5m2, format_id::e2m1,
                                     format_id::e2m3, format_id::e3m2};
constexpr std::array scale_formats = {format_id::fp32, format_id::e8m0, format_id::e4m3};
constexpr std::array tensor_scale_formats = {format_id::fp32};
constexpr matrix_shape one_number = {1, 1};

/// A view, its name in messages and its required shape.
struct named_view {
  matrix_view view;
  const char* name;
  matrix_shape shape;
  std::span<const format_id> formats;
};

using named_outputs = std::array<named_view, 5>;

named_outputs views_of(const quantize_outputs& o, const const_matrix_view& in,
                       const tile_grid& grid) {
  return {
      {{o.codes, "outputs.codes", {in.rows, in.cols}, code_formats},
       {o.scales, "outputs.scales", {grid.rows, grid.cols}, scale_formats},
       {o.codes_transposed, "outputs.codes_transposed", {in.cols, in.rows}, code_formats},
       {o.scales_transposed, "outputs.scales_transposed", {grid.cols, grid.rows}, scale_formats},
       {o.tensor_scale, "outputs.tensor_scale", one_number, tensor_scale_formats}}};
}

void check_outputs(const const_matrix_view& in, const named_outputs& views) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const named_view& v = views[i];
    if (v.view.data == nullptr) continue;
    check_view(v.view, v.name);
    check_format(v.view, v.name, v.formats);
    check_shape(v.view, v.name, v.shape.rows, v.shape.cols);
    check_space(v.view, v.name, in.space);
    check_distinct(v.view, v.name);
    check_apart(v.view, v.name, in, "in");
    for (std::size_t k = 0; k < i; ++k) {
      if (views[k].view.data != nullptr) check_apart(v.view, v.name, views[k].view, views[k].name);
    }
  }
}

/// Whether statistics alone are requested: `codes` has a format but neither a shape nor data.
bool wants_statistics_alone(const const_matrix_view& in, const quantize_outputs& o) {
  return o.statistics != nullptr && in.space == memory_space::host && o.codes.rows == 0 &&
         o.codes.cols == 0 && is_among(o.codes.format, code_formats);
}

/// The format of `codes` and `codes_transposed`; both must have equal formats.
format_id target_of(const const_matrix_view& in, const quantize_outputs& o) {
  const matrix_view& codes = o.codes;
  const matrix_view& transposed = o.codes_transposed;
  if (codes.data == nullptr && transposed.data == nullptr) {
    if (is_empty(in)) return format_id::e4m3;  // empty input: any format will do
    if (wants_statistics_alone(in, o)) return codes.format;
    refuse("outputs: codes or codes_transposed must have data");
  }
  if (codes.data != nullptr && transposed.data != nullptr) {
    check_format_of(transposed, "outputs.codes_transposed", codes, "codes");
  }
  return codes.data != nullptr ? codes.format : transposed.format;
}

/// The rule of the scales: with given inverse scales te, y = RN(x * S).
scale_rule rule_of(const quantize_options& o) {
  return o.inverse_scales.data != nullptr ? scale_rule::te : o.scale;
}

/// The format of `scales` and `scales_transposed`; both must have equal formats.
format_id scale_format_of(const quantize_outputs& o, const quantize_options& options) {
  const matrix_view& scales = o.scales;
  const matrix_view& transposed = o.scales_transposed;
  if (scales.data != nullptr && transposed.data != nullptr) {
    check_format_of(transposed, "outputs.scales_transposed", scales, "scales");
  }
  const bool one_of_both = scales.data != nullptr || transposed.data != nullptr;
  if (!one_of_both) return format_id::fp32;
  const format_id format = scales.data != nullptr ? scales.format : transposed.format;
  const bool given = options.inverse_scales.data != nullptr;
  const std::string_view rule = given ? "options.inverse_scales" : name(options.scale);
  refuse_if(format == format_id::e8m0 && (given || !is_power_of_two(options.scale)),
            "outputs: scales in e8m0 need a scale rule whose scales are powers of two, got ", rule);
  refuse_if(format == format_id::e4m3 && !has_two_levels(rule_of(options)),
            "outputs: scales in e4m3 need a scale rule with two levels, got ", rule);
  return format;
}

/// Checks a view that is only read.
void check_given(const const_matrix_view& in, const const_matrix_view& v, const char* which,
                 const matrix_shape& shape, const named_outputs& outputs) {
  if (v.data == nullptr) return;
  check_view(v, which);
  check_format(v, which, tensor_scale_formats);
  check_shape(v, which, shape.rows, shape.cols);
  check_space(v, which, in.space);
  for (const named_view& output : outputs) {
    if (output.view.data != nullptr) check_apart(output.view, output.name, v, which);
  }
}

/// Checks what only rules with two levels have, and the tiles of four over six.
void check_levels(scale_rule rule, const const_matrix_view& tensor_scale, const char* which,
                  const tile_shape& tile) {
  refuse_if(tensor_scale.data != nullptr && !has_two_levels(rule), which,
            ": a scale rule with two levels is expected, got ", rule);
  refuse_if(is_four_over_six(rule) && tile != tile_shape{1, 16} && tile != tile_shape{16, 1} &&
                tile != tile_shape{16, 16},
            "tile must be {1, 16}, {16, 1} or {16, 16} for ", rule, ", got ", tile);
}

void check_options(const quantize_options& o) {
  check_value("options.scale", o.scale, "scale_rule");
  check_value("options.nonfinite", o.nonfinite, "nonfinite");
  check_value("options.scale_overflow", o.scale_overflow, "scale_overflow");
  refuse_if(o.rounding != rounding::nearest_even && o.rounding != rounding::stochastic,
            "options.rounding must be nearest_even or stochastic, got ", o.rounding);
  check_value("options.overflow", o.overflow, "overflow");
  check_value("options.nan", o.nan, "nan_policy");
  check_random(o.rounding, o.random);
}

/// The inverse scale that replaces an infinite one: FLT_MAX or the input format's max finite, as
/// binary32 bits.
std::uint32_t largest_factor_of(scale_overflow o, format_id from) {
  if (o == scale_overflow::flt_max) return numerics::binary32::max_finite;
  return numerics::largest_value(spec_of(from));
}

/// Checks the two bounds as bits, because float comparisons would depend on DAZ.
numerics::scale_settings scale_settings_of(const quantize_options& o, format_id from) {
  namespace binary32 = numerics::binary32;
  const auto eps = std::bit_cast<std::uint32_t>(o.eps);
  const auto upper = std::bit_cast<std::uint32_t>(o.upper_bound);
  refuse_if(eps != binary32::sign_bit && eps > binary32::max_finite,
            "options.eps must be finite and >= 0");
  refuse_if(upper == 0 || upper > binary32::inf,
            "options.upper_bound must be > 0; infinity where there is none");
  return {rule_of(o), o.nonfinite, binary32::magnitude(eps), upper,
          largest_factor_of(o.scale_overflow, from)};
}

}  // namespace

void add_quantization(device_finder& memory, const quantize_call& call) {
  const quantize_outputs& o = call.outputs;
  memory.add(address_of(call.in), "in");
  memory.add(address_of(o.codes), "outputs.codes");
  memory.add(address_of(o.scales), "outputs.scales");
  memory.add(address_of(o.codes_transposed), "outputs.codes_transposed");
  memory.add(address_of(o.scales_transposed), "outputs.scales_transposed");
  memory.add(o.statistics, "outputs.statistics");
  memory.add(o.tensor_scale.data, "outputs.tensor_scale");
  memory.add(address_of(call.inverse_scales), "options.inverse_scales");
  memory.add(call.tensor_scale.data, "options.tensor_scale");
  memory.add(call.skip_if_nonzero, "options.skip_if_nonzero");
  memory.add(call.workspace, "options.workspace");
}

quantize_call checked_call(const const_matrix_view& in, const quantize_outputs& outputs,
                           const quantize_options& options) {
  check_view(in, "in");
  check_format(in, "in", number_formats);
  const tile_grid grid = grid_of(in.rows, in.cols, options.tile);
  check_options(options);
  const auto views = views_of(outputs, in, grid);
  check_outputs(in, views);
  check_given(in, options.inverse_scales, "options.inverse_scales", {grid.rows, grid.cols}, views);
  check_given(in, options.tensor_scale, "options.tensor_scale", one_number, views);
  check_levels(rule_of(options), options.tensor_scale, "options.tensor_scale", options.tile);
  check_levels(rule_of(options), outputs.tensor_scale, "outputs.tensor_scale", options.tile);
  const format_id scale_format = scale_format_of(outputs, options);
  numerics::scale_settings scale = scale_settings_of(options, in.format);
  if (scale_format == format_id::e8m0) scale.scale_of_zeros = numerics::binary32::min_normal >> 1;
  return {in,
          outputs,
          target_of(in, outputs),
          grid,
          scale,
          scale_format,
          options.inverse_scales,
          cast_rule{options.rounding, options.overflow, options.nan},
          options.random,
          options.random.pitch.value_or(static_cast<std::uint64_t>(in.cols)),
          options.skip_if_nonzero,
          options.workspace.data(),
          nullptr,
          options.tensor_scale};
}

namespace {

quantize_call checked(const const_matrix_view& in, const quantize_outputs& outputs,
                      const quantize_options& options, const executor& where) {
  const quantize_call call = checked_call(in, outputs, options);
  check_threads(where);
  return call;
}

/// Makes the call's device current until the end of the scope.
device_scope scope_of(const quantize_call& call, const executor& where) {
  device_finder memory(call.in.space);
  add_quantization(memory, call);
  return device_scope(call.in.space, memory.device(), where.stream);
}

const backend& quantizing_backend(const quantize_call& call, const executor& where) {
  return backend_for(&backend::quantize, call, call.in.space, where, "cannot quantize ",
                     call.in.format, " to ", call.to, " with ", call.scale.rule, ", ",
                     call.cast.rounding);
}

/// Checks the second level of a dequantization.
void check_level(const second_level& level, const const_matrix_view& codes) {
  check_value("level.scale", level.scale, "scale_rule");
  refuse_if((level.tensor_scale.data != nullptr) != has_two_levels(level.scale),
            "level.tensor_scale: a rule with two levels needs it and all others have "
            "none, got ",
            level.scale);
  check_given(codes, level.tensor_scale, "level.tensor_scale", one_number, {});
}

}  // namespace

tile_grid grid_of(std::int64_t rows, std::int64_t cols, const tile_shape& tile) {
  refuse_if(!is_tile(tile),
            "tile must be {1, G}, {G, 1} or {G, G} with G in 16, 32, 64, 128, 256, "
            "or {1, 0}, {0, 1}, {0, 0}, got ",
            tile);
  const auto size = [](std::int64_t extent, std::int64_t whole) {
    return extent != 0 ? extent : whole != 0 ? whole : 1;
  };
  const std::int64_t tile_rows = size(tile.rows, rows);
  const std::int64_t tile_cols = size(tile.cols, cols);
  return {tile_rows, tile_cols, tiles(rows, tile_rows), tiles(cols, tile_cols)};
}

}  // namespace backends

matrix_shape scales_shape(std::int64_t rows, std::int64_t cols, const tile_shape& tile) {
  refuse_if(rows < 0 || cols < 0, "rows, cols: sizes must be >= 0, got ", matrix_shape{rows, cols});
  const backends::tile_grid grid = backends::grid_of(rows, cols, tile);
  return {grid.rows, grid.cols};
}

void quantize(const const_matrix_view& in, const quantize_outputs& outputs,
              const quantize_options& options, const executor& where) {
  const backends::quantize_call call = backends::checked(in, outputs, options, where);
  const backends::device_scope on = backends::scope_of(call, where);
  const backends::backend& b = backends::quantizing_backend(call, where);
  if (!options.workspace.empty()) {
    backends::check_workspace(options.workspace, "options.workspace",
                              b.quantize.workspace_of(call));
  }
  b.quantize.run(call, where);
}

std::size_t quantize_workspace(const const_matrix_view& in, const quantize_outputs& outputs,
                               const quantize_options& options, const executor& where) {
  const backends::quantize_call call = backends::checked(in, outputs, options, where);
  const backends::device_scope on = backends::scope_of(call, where);
  return backends::quantizing_backend(call, where).quantize.workspace_of(call);
}

void dequantize(const const_matrix_view& codes, const const_matrix_view& scales,
                const matrix_view& out, const tile_shape& tile, const executor& where) {
  dequantize(codes, scales, out, tile, second_level{}, where);
}

void dequantize(const const_matrix_view& codes, const const_matrix_view& scales,
                const matrix_view& out, const tile_shape& tile, const second_level& level,
                const executor& where) {
  namespace b = backends;
  b::check_view(codes, "codes");
  b::check_format(codes, "codes", b::code_formats);
  b::check_view(scales, "scales");
  b::check_format(scales, "scales", b::scale_formats);
  b::check_view(out, "out");
  b::check_format(out, "out", b::number_formats);
  const b::tile_grid grid = b::grid_of(codes.rows, codes.cols, tile);
  b::check_shape(scales, "scales", grid.rows, grid.cols);
  b::check_shape(out, "out", codes.rows, codes.cols);
  b::check_space(scales, "scales", codes.space);
  b::check_space(out, "out", codes.space);
  b::check_distinct(out, "out");
  b::check_apart(out, "out", codes, "codes");
  b::check_apart(out, "out", scales, "scales");
  b::check_level(level, codes);
  if (level.tensor_scale.data != nullptr) {
    b::check_apart(out, "out", level.tensor_scale, "level.tensor_scale");
  }
  b::check_threads(where);
  const b::device_scope on(codes.space,
                           {{codes, "codes"},
                            {scales, "scales"},
                            {level.tensor_scale.data, "level.tensor_scale"},
                            {out, "out"}},
                           where.stream);
  const b::dequantize_call call{codes, scales, out, grid, level};
  b::run_call(&b::backend::dequantize, call, codes, where, "cannot dequantize");
}

}  // namespace samebits
