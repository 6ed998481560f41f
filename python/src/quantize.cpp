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

// Returns the options of the tuple (tile rows, tile cols, scale rule, eps, upper bound, nonfinite,
// rule, scale overflow).
quantize_options options_of(nb::tuple o) {
  const host_guard guard;  // a subnormal eps stays one as a float
  const cast_rule rule = rule_of(nb::cast<int>(o[6]));
  return {.tile = {nb::cast<std::int64_t>(o[0]), nb::cast<std::int64_t>(o[1])},
          .rule = static_cast<scale_rule>(nb::cast<int>(o[2])),
          .eps = nb::cast<float>(o[3]),
          .upper_bound = nb::cast<float>(o[4]),
          .nonfinite = static_cast<nonfinite>(nb::cast<int>(o[5])),
          .rounding = rule.rounding,
          .overflow = rule.overflow,
          .nan = rule.nan,
          .scale_overflow = static_cast<scale_overflow>(nb::cast<int>(o[7]))};
}

nb::object tuple_of(const quantize_statistics& s) {
  const host_guard guard;  // a subnormal float stays one as a Python number
  return nb::make_tuple(s.elements, s.zeros, s.nan, s.inf, s.underflowed, s.saturated, s.amax,
                        s.min_nonzero, s.signal, s.noise);
}

nb::tuple quantize(nb::handle x, int format, nb::handle out, bool transposed, int to,
                   int scale_format, nb::tuple rules, nb::handle random, nb::handle inverse_scales,
                   bool statistics, nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const viewed in(x, {.name = "x", .format = format_of(format), .stream = s});
  const bool on_device = in.a.memory == memory_space::device;
  quantize_options options = options_of(rules);
  viewed inverse;
  if (!inverse_scales.is_none()) {
    inverse =
        viewed(inverse_scales, {.name = "inverse_scales", .format = format_id::fp32, .stream = s});
  }
  if (statistics && on_device) {
    raise_invalid("statistics: they need host memory; pass statistics=False for device arrays");
  }
  const quantized_arrays results(x, in, out, transposed, options.tile, static_cast<format_id>(to),
                                 static_cast<format_id>(scale_format), s);
  quantize_statistics found;
  quantize_outputs outputs = results.outputs();
  outputs.statistics = statistics ? &found : nullptr;
  options.random = random_of(random);
  options.inverse_scales = inverse.view;
  const executor where = executor_of(threads, backend, stream, in.a, in.a.size());
  const bool made = out.is_none();
  const argument_names names = {{"in", "x"},
                                {"round", "rounding"},
                                {"outputs", "scale_format"},
                                {"codes", made ? "to" : "out.codes"},
                                {"scales", made ? "scale_format" : "out.scales"},
                                {"codes_transposed", "out.codes_transposed"},
                                {"scales_transposed", "out.scales_transposed"}};
  nb::object scratch;
  if (in.a.library != nullptr && on_device && stream.is_none()) {
    std::size_t bytes = 0;
    run_to_end(
        0, [&] { bytes = quantize_workspace(in.view, outputs, options, where); }, names);
    if (bytes > 0) {
      scratch = torch_workspace(in.a, bytes);
      const array a = array_of(scratch, {.name = "workspace", .format = format_id::e8m0});
      options.workspace = {reinterpret_cast<std::byte*>(a.data), bytes};
    }
  }
  run(
      in.a.size(), [&] { samebits::quantize(in.view, outputs, options, where); }, names);
  return nb::make_tuple(results.object(0), results.object(1), results.object(2), results.object(3),
                        statistics ? tuple_of(found) : nb::none());
}

nb::object dequantize(nb::handle codes, int format, nb::handle scales, int scale_format,
                      std::int64_t tile_rows, std::int64_t tile_cols, nb::handle out, int to,
                      nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const viewed in(codes, {.name = "codes", .format = format_of(format), .stream = s});
  const viewed by(scales, {.name = "scales", .format = format_of(scale_format), .stream = s});
  const output target = output_like(codes, in.a, static_cast<format_id>(to), out, s);
  const matrix_view into = view_of({&target.a, "out"});
  const tile_shape tile = {tile_rows, tile_cols};
  const executor where = executor_of(threads, backend, stream, in.a, in.a.size());
  run(in.a.size(), [&] { samebits::dequantize(in.view, by.view, into, tile, where); });
  return target.object;
}

nb::list recipes() {
  nb::list result;
  for (const recipe_preset& p : recipe_presets) {
    const recipe& r = p.rules;
    nb::dict d;
    d["name"] = p.name;
    d["tile"] = nb::make_tuple(r.tile.rows, r.tile.cols);
    d["scale"] = name(r.rule);
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

void delayed_observe(nb::handle history, double amax) {
  const host_guard guard;
  observe(history_of(history), static_cast<float>(amax));
}

nb::tuple delayed_update(double inverse_scale, double scale, nb::handle history, int format,
                         int margin, int choice, int zero_steps) {
  const std::span<float> amaxes = history_of(history);
  const host_guard guard;
  const delayed_scale state = {static_cast<float>(inverse_scale), static_cast<float>(scale)};
  const delayed_scale next = updated(state, amaxes,
                                     {.to = static_cast<format_id>(format),
                                      .margin = margin,
                                      .choice = static_cast<history_choice>(choice),
                                      .on_zero = static_cast<zero_step>(zero_steps)});
  return nb::make_tuple(next.inverse_scale, next.scale);
}

}  // namespace

void bind_quantize(nb::module_& m) {
  m.def("quantize", &quantize, nb::arg("x").none(), nb::arg("format"), nb::arg("out").none(),
        nb::arg("transposed"), nb::arg("to"), nb::arg("scale_format"), nb::arg("rules"),
        nb::arg("random").none(), nb::arg("inverse_scales").none(), nb::arg("statistics"),
        nb::arg("threads").none(), nb::arg("backend").none(), nb::arg("stream").none(),
        "Quantizes an array; returns codes, scales, both transposed or None, and the fields of "
        "samebits.Statistics or None.");
  m.def("dequantize", &dequantize, nb::arg("codes").none(), nb::arg("format"),
        nb::arg("scales").none(), nb::arg("scale_format"), nb::arg("tile_rows"),
        nb::arg("tile_cols"), nb::arg("out").none(), nb::arg("to"), nb::arg("threads").none(),
        nb::arg("backend").none(), nb::arg("stream").none(), "Dequantizes codes.");
  m.def("recipes", &recipes, "Returns the fields of each samebits.Recipe preset.");
  m.def("delayed_observe", &delayed_observe, nb::arg("history"), nb::arg("amax"),
        "Records an amax in history[0].");
  m.def("delayed_update", &delayed_update, nb::arg("inverse_scale"), nb::arg("scale"),
        nb::arg("history"), nb::arg("format"), nb::arg("margin"), nb::arg("choice"),
        nb::arg("zero_step"), "Returns the next scales and advances the history.");
}

}  // namespace samebits::python
