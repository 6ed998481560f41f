// Quantization, dequantization, recipes, delayed scaling.
#include "samebits/quantize.hpp"

#include "call.hpp"
#include "samebits/delayed_scaling.hpp"
#include "samebits/recipe.hpp"

namespace samebits::python {
namespace {

constexpr const char* output_names[] = {"out.codes", "out.scales", "out.codes_transposed",
                                        "out.scales_transposed"};

// Codes, scales, transposed codes and transposed scales: those of an earlier call, or new ones.
struct quantized_arrays {
  output each[4];

  // `out` is None or a tuple of the four arrays, in which those of the transpose may be None.
  quantized_arrays(nb::handle x, const viewed& in, nb::handle out, bool transposed,
                   const tile_shape& tile, format_id to, format_id scale_format, void* stream) {
    const format_id formats[] = {to, scale_format, to, scale_format};
    if (!out.is_none()) {
      for (int i = 0; i < 4; ++i) {
        nb::object given = out[i];
        if (given.is_none()) continue;
        const argument what = {.name = output_names[i],
                               .needs = access::write,
                               .format = formats[i],
                               .stream = stream};
        array a = array_of(given, what);
        each[i] = {std::move(given), std::move(a)};
      }
      return;
    }
    const matrix_view& m = in.view;
    matrix_shape s;
    run_to_end(0, [&] { s = scales_shape(m.rows, m.cols, tile); });
    const std::int64_t shapes[][2] = {{}, {s.rows, s.cols}, {m.cols, m.rows}, {s.cols, s.rows}};
    each[0] = new_output(x, in.a, to);
    for (int i = 1; i < (transposed ? 4 : 2); ++i) {
      each[i] = new_output(x, in.a, 2, shapes[i], formats[i]);
    }
  }

  [[nodiscard]] quantize_outputs outputs() const {
    const auto view = [&](int i) {
      return each[i].object.is_valid() ? view_of({&each[i].a, output_names[i]}) : matrix_view{};
    };
    return {.codes = view(0),
            .scales = view(1),
            .codes_transposed = view(2),
            .scales_transposed = view(3)};
  }
  [[nodiscard]] nb::object object(int i) const {
    return each[i].object.is_valid() ? each[i].object : nb::none();
  }
};

// Returns how scales are made, of (tile, scale, eps, upper bound, nonfinite, scale overflow) of a
// samebits.Recipe.
quantize_options scale_options_of(nb::handle rules) {
  const host_guard guard;  // a subnormal eps stays one as a float
  return {.tile = tile_of(item(rules, 0), "tile"),
          .scale = enumerator_of<scale_rule>(item(rules, 1), "scale"),
          .eps = static_cast<float>(number_of(item(rules, 2), "eps")),
          .upper_bound = static_cast<float>(number_of(item(rules, 3), "upper_bound")),
          .nonfinite = enumerator_of<nonfinite>(item(rules, 4), "nonfinite"),
          .scale_overflow = enumerator_of<scale_overflow>(item(rules, 5), "scale_overflow")};
}

// Refuses the rules of a samebits.Recipe by which no matrix could be quantized.
void check_recipe(nb::handle rules, nb::handle overflow, nb::handle scale_format,
                  nb::handle source) {
  const quantize_options o = scale_options_of(rules);
  const recipe given = {.tile = o.tile,
                        .scale = o.scale,
                        .eps = o.eps,
                        .upper_bound = o.upper_bound,
                        .nonfinite = o.nonfinite,
                        .scale_overflow = o.scale_overflow,
                        .overflow = enumerator_of<samebits::overflow>(overflow, "overflow"),
                        .scale_format = format_named(scale_format, "scale_format"),
                        .source = enumerator_of<scale_source>(source, "source")};
  run_to_end(0, [&] { check(given); }, {{"outputs", "scale_format"}, {"scales", "scale_format"}});
}

nb::object tuple_of(const quantize_statistics& s) {
  const host_guard guard;  // a subnormal float stays one as a Python number
  return nb::make_tuple(s.elements, s.zeros, s.nan, s.inf, s.underflowed, s.saturated, s.amax,
                        s.min_nonzero, s.signal, s.noise);
}

nb::tuple quantize(nb::handle x, nb::handle format, nb::handle out, nb::handle transposed,
                   nb::handle to, nb::handle scale_format, nb::handle rules, nb::handle how,
                   nb::handle inverse_scales, nb::handle with_statistics, nb::handle where) {
  void* const s = stream_in(where);
  const bool statistics = flag_of(with_statistics, "statistics");
  const viewed in(x, {.name = "x", .format = format_of(format), .stream = s});
  const bool on_device = in.a.memory == memory_space::device;
  quantize_options options = scale_options_of(rules);
  const rounded codes(how);
  options.rounding = codes.rule.rounding;
  options.overflow = codes.rule.overflow;
  options.nan = codes.rule.nan;
  options.random = codes.random;
  viewed inverse;
  if (!inverse_scales.is_none()) {
    inverse =
        viewed(inverse_scales, {.name = "inverse_scales", .format = format_id::fp32, .stream = s});
  }
  if (statistics && on_device) {
    raise_invalid("statistics: they need host memory; pass statistics=False for device arrays");
  }
  const quantized_arrays results(x, in, out, flag_of(transposed, "transposed"), options.tile,
                                 format_named(to, "to"), format_named(scale_format, "scale_format"),
                                 s);
  quantize_statistics found;
  quantize_outputs outputs = results.outputs();
  outputs.statistics = statistics ? &found : nullptr;
  options.inverse_scales = inverse.view;
  const executor on = executor_of(where, in.a, in.a.size());
  const bool made = out.is_none();
  const argument_names names = {{"in", "x"},
                                {"round", "rounding"},
                                {"outputs", "scale_format"},
                                {"codes", made ? "to" : "out.codes"},
                                {"scales", made ? "scale_format" : "out.scales"},
                                {"codes_transposed", "out.codes_transposed"},
                                {"scales_transposed", "out.scales_transposed"}};
  nb::object scratch;
  if (in.a.library != nullptr && on_device && item(where, 2).is_none()) {
    std::size_t bytes = 0;
    run_to_end(
        0, [&] { bytes = quantize_workspace(in.view, outputs, options, on); }, names);
    if (bytes > 0) {
      scratch = torch_workspace(in.a, bytes);
      const array a = array_of(scratch, {.name = "workspace", .format = format_id::e8m0});
      options.workspace = {reinterpret_cast<std::byte*>(a.data), bytes};
    }
  }
  run(
      in.a.size(), [&] { samebits::quantize(in.view, outputs, options, on); }, names);
  return nb::make_tuple(results.object(0), results.object(1), results.object(2), results.object(3),
                        statistics ? tuple_of(found) : nb::none(), name(results.each[0].a.format));
}

nb::object dequantize(nb::handle codes, nb::handle format, nb::handle scales,
                      nb::handle scale_format, nb::handle tile, nb::handle out, nb::handle to,
                      nb::handle where) {
  void* const s = stream_in(where);
  const tile_shape shape = tile_of(tile, "tile");
  const viewed in(codes, {.name = "codes", .format = format_of(format), .stream = s});
  const viewed by(
      scales, {.name = "scales", .format = format_of(scale_format, "scale_format"), .stream = s});
  const output target = output_like(codes, in.a, format_named(to, "to"), out, s);
  const matrix_view into = view_of({&target.a, "out"});
  const executor on = executor_of(where, in.a, in.a.size());
  run(in.a.size(), [&] { samebits::dequantize(in.view, by.view, into, shape, on); });
  return target.object;
}

nb::list recipes() {
  nb::list result;
  for (const recipe_preset& p : recipe_presets) {
    const recipe& r = p.rules;
    nb::dict d;
    d["name"] = p.name;
    d["tile"] = nb::make_tuple(r.tile.rows, r.tile.cols);
    d["scale"] = name(r.scale);
    d["eps"] = r.eps;
    d["upper_bound"] = r.upper_bound;
    d["nonfinite"] = name(r.nonfinite);
    d["scale_overflow"] = name(r.scale_overflow);
    d["overflow"] = name(r.overflow);
    d["scale_format"] = name(r.scale_format);
    d["source"] = name(r.source);
    d["reproduces"] = p.reproduces;
    d["version"] = p.version;
    d["exceptions"] = p.exceptions;
    d["evidence"] = name(p.verified);
    d["evidence_nonfinite"] = name(p.nonfinite);
    result.append(d);
  }
  return result;
}

// Describes a history of delayed scaling: dense, writable binary32 numbers in host memory.
std::span<float> history_of(nb::handle history) {
  const array a = array_of(history, {.name = "history", .needs = access::write});
  const bool dense = a.dims == 1 && (a.shape[0] < 2 || a.strides[0] == 1);
  if (!dense || a.format != format_id::fp32 || a.memory != memory_space::host) {
    raise_invalid("history: a contiguous float32 array with one axis is expected");
  }
  return {reinterpret_cast<float*>(a.data), static_cast<std::size_t>(a.shape[0])};
}

void delayed_observe(nb::handle history, nb::handle amax) {
  const double largest = number_of(amax, "amax");
  const host_guard guard;
  observe(history_of(history), static_cast<float>(largest));
}

delayed_settings delayed_settings_of(nb::handle to, nb::handle margin, nb::handle choice,
                                     nb::handle zero_step) {
  const format_id format = format_named(to, "to");
  if (format != format_id::e4m3 && format != format_id::e5m2) {
    raise_invalid("to: e4m3 or e5m2 is expected; got " + std::string(name(format)));
  }
  return {.to = format,
          .margin = integer_of<int>(margin, "margin", -64, 64),
          .choice = enumerator_of<history_choice>(choice, "choice"),
          .zero_step = enumerator_of<samebits::zero_step>(zero_step, "zero_step")};
}

nb::tuple delayed_update(double inverse_scale, double scale, nb::handle history,
                         nb::handle settings) {
  const std::span<float> amaxes = history_of(history);
  const host_guard guard;
  const delayed_scale state = {static_cast<float>(inverse_scale), static_cast<float>(scale)};
  const delayed_scale next = updated(state, amaxes,
                                     delayed_settings_of(item(settings, 0), item(settings, 1),
                                                         item(settings, 2), item(settings, 3)));
  return nb::make_tuple(next.inverse_scale, next.scale);
}

}  // namespace

void bind_quantize(nb::module_& m) {
  using nb::arg;
  def(m, "quantize", &quantize,
      "Quantizes an array; returns codes, scales, both transposed or None, the fields of "
      "samebits.Statistics or None, and the codes' format.");
  def(m, "dequantize", &dequantize, "Dequantizes codes.");
  m.def("recipes", &recipes, "Returns the fields of each samebits.Recipe preset.");
  def(m, "check_recipe", &check_recipe, "Refuses rules that no input could be quantized by.");
  def(m, "delayed_observe", &delayed_observe, "Records an amax in history[0].");
  def(m, "delayed_update", &delayed_update, "Returns the next scales and advances the history.");
  m.def(
      "check_delayed_settings",
      [](nb::handle to, nb::handle margin, nb::handle choice, nb::handle zero_step) {
        delayed_settings_of(to, margin, choice, zero_step);
      },
      arg("to").none(), arg("margin").none(), arg("choice").none(), arg("zero_step").none(),
      "Refuses settings of samebits.DelayedScaling.");
}

}  // namespace samebits::python
