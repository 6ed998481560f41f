// Fused operators: check arguments and choose a backend.
#include "samebits/operators.hpp"

#include <bit>
#include <cstddef>
#include <string>
#include <type_traits>

#include "backends/api/functions/fused_call.hpp"
#include "backends/dispatch/refuse.hpp"
#include "numerics/hardware/torch_operators/power.hpp"

namespace samebits {
namespace backends {
namespace {

/// The left or the right half of a matrix with an even number of columns.
template <class View>
View half_of(const View& v, int which) {
  View half = v;
  half.cols /= 2;
  if (which == 0 || v.data == nullptr) return half;
  const std::int64_t bytes = half.cols * v.col_stride * storage_bytes(v.format);
  using byte = std::conditional_t<std::is_same_v<View, matrix_view>, std::byte, const std::byte>;
  half.data = static_cast<byte*>(v.data) + bytes;
  return half;
}

void run_rotation(fused of, const const_matrix_view& in, const char* in_name,
                  const const_matrix_view& cos, const const_matrix_view& sin,
                  const matrix_view& out, const rotate_options& options, const executor& where) {
  check_torch_rule(options.rule, "rotary embedding", out.format);
  check_at_least("each", options.each, 1);
  check_view(out, "out");
  check_like(in, in_name, out, "out");
  check_distinct(out, "out");
  check_overlap(in, in_name, out);
  refuse_if(out.cols % 2 != 0, "out: must have an even number of columns, got ", out.cols);
  checked_fused call({of, {}}, {{half_of(out, 0), "out"}, {half_of(out, 1), "out"}});
  for (const int i : {0, 1}) call.add(half_of(in, i), in_name);
  call.add_rows({cos, options.each}, "cos");
  call.add_rows({sin, options.each}, "sin");
  call.run(where);
}

std::uint32_t binary32_of(double x) { return torch::narrow(std::bit_cast<std::uint64_t>(x)); }

}  // namespace

torch::fused_plan gated_plan(fused of, function f, function_rule rule,
                             const const_matrix_view& out) {
  check_value("function", f, "function");
  const std::string what =
      (of == fused::gated || of == fused::gated_gradient ? "gated " : "biased ") +
      std::string(name(f));
  check_torch_rule(rule, what, out.format);
  refuse_if<unsupported>(f != function::silu && f != function::gelu && f != function::gelu_tanh,
                         "rule torch_2_11 has no ", what, " of ", out.format, " numbers");
  return {of, numerics::plan_of(function_rule::torch_2_11, f, out.format, 0, 0)};
}

}  // namespace backends

using backends::checked_fused;
using backends::fused;

void gated(function f, const const_matrix_view& gate, const const_matrix_view& up,
           const matrix_view& out, function_rule rule, const executor& where) {
  checked_fused(backends::gated_plan(fused::gated, f, rule, out), {{out, "out"}},
                {{gate, "gate"}, {up, "up"}})
      .run(where);
}

void gated_gradient(function f, const const_matrix_view& grad, const const_matrix_view& gate,
                    const const_matrix_view& up, const matrix_view& of_gate,
                    const matrix_view& of_up, function_rule rule, const executor& where) {
  checked_fused(backends::gated_plan(fused::gated_gradient, f, rule, of_gate),
                {{of_gate, "of_gate"}, {of_up, "of_up"}},
                {{grad, "grad"}, {gate, "gate"}, {up, "up"}})
      .run(where);
}

void biased(function f, const const_matrix_view& x, const const_matrix_view& bias,
            const matrix_view& out, function_rule rule, const executor& where) {
  checked_fused call(backends::gated_plan(fused::biased, f, rule, out), {{out, "out"}}, {{x, "x"}});
  backends::check_shape(bias, "bias", 1, out.cols);
  call.add_rows({bias}, "bias");
  call.run(where);
}

void biased_gradient(function f, const const_matrix_view& grad, const const_matrix_view& x,
                     const const_matrix_view& bias, const matrix_view& out, function_rule rule,
                     const executor& where) {
  checked_fused call(backends::gated_plan(fused::biased_gradient, f, rule, out), {{out, "out"}},
                     {{grad, "grad"}, {x, "x"}});
  backends::check_shape(bias, "bias", 1, out.cols);
  call.add_rows({bias}, "bias");
  call.run(where);
}

void rotate(const const_matrix_view& in, const const_matrix_view& cos, const const_matrix_view& sin,
            const matrix_view& out, const rotate_options& options, const executor& where) {
  backends::run_rotation(fused::rotation, in, "in", cos, sin, out, options, where);
}

void rotate_gradient(const const_matrix_view& grad, const const_matrix_view& cos,
                     const const_matrix_view& sin, const matrix_view& out,
                     const rotate_options& options, const executor& where) {
  backends::run_rotation(fused::rotation_gradient, grad, "grad", cos, sin, out, options, where);
}

void embed(std::span<const std::int64_t> indices, const const_matrix_view& table,
           const const_matrix_view& positions, const matrix_view& out, const embed_options& options,
           const executor& where) {
  const bool sums = positions.data != nullptr;
  backends::check_torch_rule(options.rule, "embedding", out.format);
  checked_fused call(
      {sums ? fused::scaled_sum : fused::scaled, {}, backends::binary32_of(options.scale)},
      {{out, "out"}});
  refuse_if(static_cast<std::int64_t>(indices.size()) != out.rows, "indices: must be ", out.rows,
            ", one for each row, got ", indices.size());
  if (table.space == memory_space::host) backends::check_indices(indices, "indices", table.rows);
  call.add_rows({table, 1, indices.data()}, "table");
  if (sums) call.add_rows({positions}, "positions");
  call.run(where);
}

namespace backends {
namespace {

/// The plan of fake quantization; its scale is the number of levels above 0.
torch::fused_plan clip_fake_quantize_plan(fused of, const clip_fake_quantize_options& options) {
  refuse_if(options.bits < 2 || options.bits > 16, "bits: must be from 2 to 16, got ",
            options.bits);
  const auto levels = (std::uint32_t{1} << (options.bits - 1)) - 1;
  return {of, {}, ptx::from_int(levels)};
}

/// Adds the clip, one element for all.
void add_clip(checked_fused& call, const const_matrix_view& clip, std::int64_t cols) {
  check_view(clip, "clip");
  check_shape(clip, "clip", 1, 1);
  call.add_rows({{clip.data, clip.format, 1, cols, 0, 0, clip.space}}, "clip");
}

}  // namespace
}  // namespace backends

void clip_fake_quantize(const const_matrix_view& in, const const_matrix_view& clip,
                        const matrix_view& out, const clip_fake_quantize_options& options,
                        const executor& where) {
  checked_fused call(backends::clip_fake_quantize_plan(fused::clip_fake_quantize, options),
                     {{out, "out"}}, {{in, "in"}});
  backends::add_clip(call, clip, out.cols);
  call.run(where);
}

void clip_fake_quantize_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                                 const const_matrix_view& clip, const matrix_view& of_in,
                                 const matrix_view& of_clip,
                                 const clip_fake_quantize_options& options, const executor& where) {
  checked_fused call(backends::clip_fake_quantize_plan(fused::clip_fake_quantize_gradient, options),
                     {{of_in, "of_in"}, {of_clip, "of_clip"}}, {{grad, "grad"}, {in, "in"}});
  backends::add_clip(call, clip, of_in.cols);
  call.run(where);
}

void dropout(const const_matrix_view& in, const matrix_view& out, const dropout_options& options,
             const executor& where) {
  refuse_if(!(options.probability >= 0 && options.probability <= 1),
            "probability: must be from 0 to 1");
  checked_fused call(
      numerics::torch_2_11::dropout_plan(out.format, backends::binary32_of(options.probability)),
      {{out, "out"}});
  call.set_random(options.random);
  call.add(in, "in");
  call.run(where);
}

}  // namespace samebits
