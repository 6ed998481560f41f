// Quantization, dequantization, recipes, delayed scaling.
#include "call.hpp"

namespace samebits::python {
namespace {

// The view of an output, or null for None.
struct optional_view {
  array a;
  samebits_view view = {};
  bool present = false;

  optional_view(nb::handle object, const char* name, int format, access needs, void* stream) {
    if (object.is_none()) return;
    a = array_of(object, {.name = name, .needs = needs, .format = format, .stream = stream});
    view = view_of({&a, name});
    present = true;
  }
  [[nodiscard]] const samebits_view* get() const { return present ? &view : nullptr; }
};

// Returns the options of the tuple (tile rows, tile cols, scale rule, eps, upper bound, nonfinite,
// rule, scale overflow).
samebits_quantize_options options_of(nb::tuple o) {
  const host_guard guard;  // a subnormal eps stays one as a float
  samebits_quantize_options options = SAMEBITS_QUANTIZE_OPTIONS_INIT;
  options.tile = {nb::cast<std::int64_t>(o[0]), nb::cast<std::int64_t>(o[1])};
  options.rule = nb::cast<std::int32_t>(o[2]);
  options.eps = nb::cast<float>(o[3]);
  options.upper_bound = nb::cast<float>(o[4]);
  options.nonfinite = nb::cast<std::int32_t>(o[5]);
  const rule r(nb::cast<int>(o[6]));
  options.rounding = r.rounding;
  options.overflow = r.overflow;
  options.nan_policy = r.nan_policy;
  options.scale_overflow = nb::cast<std::int32_t>(o[7]);
  return options;
}

nb::object tuple_of(const samebits_quantize_statistics& s) {
  const host_guard guard;  // a subnormal float stays one as a Python number
  return nb::make_tuple(s.elements, s.zeros, s.nan, s.inf, s.underflowed, s.saturated, s.amax,
                        s.min_nonzero, s.signal, s.noise);
}

nb::object quantize(nb::handle x, int format, nb::tuple out, int to, int scale_format,
                    nb::tuple rules, nb::handle random, nb::handle inverse_scales, bool statistics,
                    nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const array in = array_of(x, {.name = "x", .format = format, .stream = s});
  const samebits_view from = view_of({&in, "x"});
  const optional_view codes(out[0], "out.codes", to, access::write, s);
  const optional_view scales(out[1], "out.scales", scale_format, access::write, s);
  const optional_view codes_t(out[2], "out.codes_transposed", to, access::write, s);
  const optional_view scales_t(out[3], "out.scales_transposed", scale_format, access::write, s);
  const optional_view inverse(inverse_scales, "inverse_scales", SAMEBITS_FORMAT_FP32, access::read,
                              s);
  samebits_quantize_statistics found = {};
  if (statistics && in.memory == SAMEBITS_MEMORY_DEVICE) {
    raise_invalid("statistics: they need host memory; pass statistics=False for device arrays");
  }
  samebits_quantize_outputs outputs = SAMEBITS_QUANTIZE_OUTPUTS_INIT;
  outputs.codes = codes.get();
  outputs.scales = scales.get();
  outputs.codes_transposed = codes_t.get();
  outputs.scales_transposed = scales_t.get();
  outputs.statistics = statistics ? &found : nullptr;
  samebits_quantize_options options = options_of(rules);
  options.random = random_of(random);
  options.inverse_scales = inverse.get();
  const samebits_executor where = executor_of(threads, backend, stream, in, in.size());
  run(in.size(), [&] { return samebits_quantize(&from, &outputs, &options, &where); });
  return statistics ? tuple_of(found) : nb::none();
}

void dequantize(nb::handle codes, int format, nb::handle scales, int scale_format,
                std::int64_t tile_rows, std::int64_t tile_cols, nb::handle out, int to,
                nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const array in = array_of(codes, {.name = "codes", .format = format, .stream = s});
  const array by = array_of(scales, {.name = "scales", .format = scale_format, .stream = s});
  const array target =
      array_of(out, {.name = "out", .needs = access::write, .format = to, .stream = s});
  check_shape({&target, "out"}, in.dims, in.shape);
  const samebits_view from = view_of({&in, "codes"});
  const samebits_view scale = view_of({&by, "scales"});
  const samebits_view into = view_of({&target, "out"});
  const samebits_tile tile = {tile_rows, tile_cols};
  const samebits_executor where = executor_of(threads, backend, stream, in, in.size());
  run(in.size(), [&] { return samebits_dequantize(&from, &scale, &into, &tile, &where); });
}

nb::dict dict_of(const samebits_recipe_preset& p) {
  const auto name = [](samebits_enumeration e, std::int32_t v) { return samebits_enum_name(e, v); };
  const samebits_recipe& r = p.rules;
  nb::dict d;
  d["name"] = p.name;
  d["tile"] = nb::make_tuple(r.tile.rows, r.tile.cols);
  d["scale"] = name(SAMEBITS_ENUM_SCALE_RULE, r.rule);
  d["eps"] = r.eps;
  d["upper_bound"] = r.upper_bound;
  d["nonfinite"] = name(SAMEBITS_ENUM_NONFINITE, r.nonfinite);
  d["scale_overflow"] = name(SAMEBITS_ENUM_SCALE_OVERFLOW, r.scale_overflow);
  d["overflow"] = name(SAMEBITS_ENUM_OVERFLOW, r.overflow);
  d["scale_format"] = name(SAMEBITS_ENUM_FORMAT, r.scale_format);
  d["source"] = name(SAMEBITS_ENUM_SCALE_SOURCE, r.source);
  d["reproduces"] = p.reproduces;
  d["version"] = p.version;
  d["exceptions"] = p.exceptions;
  d["evidence"] = name(SAMEBITS_ENUM_RECIPE_EVIDENCE, p.verified);
  d["evidence_nonfinite"] = name(SAMEBITS_ENUM_RECIPE_EVIDENCE, p.verified_nonfinite);
  return d;
}

nb::list recipes() {
  nb::list result;
  for (int i = 0; i < samebits_recipe_count(); ++i) {
    samebits_recipe_preset preset;
    check(samebits_recipe_at(i, &preset));
    result.append(dict_of(preset));
  }
  return result;
}

// Describes a history of delayed scaling: dense, writable binary32 numbers in host memory.
array history_of(nb::handle history) {
  array a = array_of(history, {.name = "history", .needs = access::write});
  const bool dense = a.dims == 1 && (a.shape[0] < 2 || a.strides[0] == 1);
  if (!dense || a.format != SAMEBITS_FORMAT_FP32 || a.memory != SAMEBITS_MEMORY_HOST) {
    raise_invalid("history: a contiguous float32 array with one axis is expected");
  }
  return a;
}

void delayed_observe(nb::handle history, double amax) {
  const host_guard guard;
  const array h = history_of(history);
  check(samebits_delayed_observe(reinterpret_cast<float*>(h.data),
                                 static_cast<std::size_t>(h.shape[0]), static_cast<float>(amax)));
}

nb::tuple delayed_update(double inverse_scale, double scale, nb::handle history, int format,
                         int margin, int choice, int zero_step) {
  const array h = history_of(history);
  const host_guard guard;
  samebits_delayed_scale state = {static_cast<float>(inverse_scale), static_cast<float>(scale)};
  samebits_delayed_settings settings = SAMEBITS_DELAYED_SETTINGS_INIT;
  settings.format = format;
  settings.margin = margin;
  settings.history_choice = choice;
  settings.zero_step = zero_step;
  check(samebits_delayed_update(&state, reinterpret_cast<float*>(h.data),
                                static_cast<std::size_t>(h.shape[0]), &settings));
  return nb::make_tuple(state.inverse_scale, state.scale);
}

}  // namespace

void bind_quantize(nb::module_& m) {
  m.def(
      "scales_shape",
      [](std::int64_t rows, std::int64_t cols, std::int64_t tile_rows, std::int64_t tile_cols) {
        const samebits_tile tile = {tile_rows, tile_cols};
        std::int64_t r = 0;
        std::int64_t c = 0;
        check(samebits_scales_shape(rows, cols, &tile, &r, &c));
        return nb::make_tuple(r, c);
      },
      nb::arg("rows"), nb::arg("cols"), nb::arg("tile_rows"), nb::arg("tile_cols"),
      "Returns the rows and columns of the scales.");
  m.def("quantize", &quantize, nb::arg("x").none(), nb::arg("format"), nb::arg("out"),
        nb::arg("to"), nb::arg("scale_format"), nb::arg("rules"), nb::arg("random").none(),
        nb::arg("inverse_scales").none(), nb::arg("statistics"), nb::arg("threads").none(),
        nb::arg("backend").none(), nb::arg("stream").none(),
        "Quantizes an array; returns the fields of samebits.Statistics or None.");
  m.def("dequantize", &dequantize, nb::arg("codes").none(), nb::arg("format"),
        nb::arg("scales").none(), nb::arg("scale_format"), nb::arg("tile_rows"),
        nb::arg("tile_cols"), nb::arg("out"), nb::arg("to"), nb::arg("threads").none(),
        nb::arg("backend").none(), nb::arg("stream").none(), "Dequantizes codes into an array.");
  m.def("recipes", &recipes, "Returns the fields of each samebits.Recipe preset.");
  m.def("delayed_observe", &delayed_observe, nb::arg("history"), nb::arg("amax"),
        "Records an amax in history[0].");
  m.def("delayed_update", &delayed_update, nb::arg("inverse_scale"), nb::arg("scale"),
        nb::arg("history"), nb::arg("format"), nb::arg("margin"), nb::arg("choice"),
        nb::arg("zero_step"), "Returns the next scales and advances the history.");
}

}  // namespace samebits::python
