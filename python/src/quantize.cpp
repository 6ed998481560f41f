// Quantization, dequantization, recipes, delayed scaling.
#include "c_call.hpp"

namespace samebits::python {
namespace {

// A result or an optional argument, and its view.
struct operand_view {
  output owner;
  samebits_view view = {};

  /// Null for None.
  [[nodiscard]] const samebits_view* get() const {
    return owner.object.is_valid() ? &view : nullptr;
  }
};

operand_view view_of(nb::handle object, const argument& what) {
  operand_view v;
  if (object.is_none()) return v;
  v.owner = {nb::borrow(object), array_of(object, what)};
  v.view = c::view_of({&v.owner.a, what.name});
  return v;
}

// The arrays of the results of quantize(): those of an earlier call, or new ones.
class quantized_arrays {
 public:
  // `out` is None or (codes, scales, transposed codes or None, transposed scales or None).
  quantized_arrays(nb::handle x, const array& in, const samebits_view& matrix, nb::handle out,
                   bool transposed, samebits_tile tile, int to, int scale_format, void* stream) {
    if (!out.is_none()) {
      const auto given = [&](int i, const char* name, int format) {
        return view_of(
            out[i],
            {.name = name, .needs = access::write, .format = format_of(format), .stream = stream});
      };
      codes_ = given(0, "out.codes", to);
      scales_ = given(1, "out.scales", scale_format);
      codes_transposed_ = given(2, "out.codes_transposed", to);
      scales_transposed_ = given(3, "out.scales_transposed", scale_format);
      return;
    }
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    c::check(samebits_scales_shape(matrix.rows, matrix.cols, &tile, &rows, &cols));
    const auto make = [&](int dims, const std::int64_t* shape, int format) {
      operand_view v;
      v.owner = new_output(x, in, dims, shape, static_cast<format_id>(format));
      v.view = c::view_of({&v.owner.a, "out"});
      return v;
    };
    const std::int64_t scales[] = {rows, cols};
    codes_ = make(in.dims, in.shape, to);
    scales_ = make(2, scales, scale_format);
    if (!transposed) return;
    const std::int64_t codes_t[] = {matrix.cols, matrix.rows};
    const std::int64_t scales_t[] = {cols, rows};
    codes_transposed_ = make(2, codes_t, to);
    scales_transposed_ = make(2, scales_t, scale_format);
  }

  [[nodiscard]] samebits_quantize_outputs outputs() const {
    samebits_quantize_outputs o = SAMEBITS_QUANTIZE_OUTPUTS_INIT;
    o.codes = codes_.get();
    o.scales = scales_.get();
    o.codes_transposed = codes_transposed_.get();
    o.scales_transposed = scales_transposed_.get();
    return o;
  }
  // Returns (codes, scales, transposed codes or None, transposed scales or None, statistics).
  [[nodiscard]] nb::tuple objects(nb::object statistics) const {
    const auto object = [](const operand_view& v) {
      return v.owner.object.is_valid() ? v.owner.object : nb::none();
    };
    return nb::make_tuple(object(codes_), object(scales_), object(codes_transposed_),
                          object(scales_transposed_), statistics);
  }

 private:
  operand_view codes_, scales_, codes_transposed_, scales_transposed_;
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
  const c::rule r(nb::cast<int>(o[6]));
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

nb::tuple quantize(nb::handle x, int format, nb::handle out, bool transposed, int to,
                   int scale_format, nb::tuple rules, nb::handle random, nb::handle inverse_scales,
                   bool statistics, nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const array in = array_of(x, {.name = "x", .format = format_of(format), .stream = s});
  const samebits_view from = c::view_of({&in, "x"});
  samebits_quantize_options options = options_of(rules);
  const operand_view inverse =
      view_of(inverse_scales, {.name = "inverse_scales", .format = format_id::fp32, .stream = s});
  if (statistics && in.memory == memory_space::device) {
    raise_invalid("statistics: they need host memory; pass statistics=False for device arrays");
  }
  const quantized_arrays results(x, in, from, out, transposed, options.tile, to, scale_format, s);
  samebits_quantize_statistics found = {};
  samebits_quantize_outputs outputs = results.outputs();
  outputs.statistics = statistics ? &found : nullptr;
  options.random = c::random_of(random);
  options.inverse_scales = inverse.get();
  const samebits_executor where = c::executor_of(threads, backend, stream, in, in.size());
  nb::object scratch;
  if (in.library != nullptr && in.memory == memory_space::device && stream.is_none()) {
    std::size_t bytes = 0;
    c::check(samebits_quantize_workspace(&from, &outputs, &options, &bytes, &where));
    if (bytes > 0) {
      scratch = torch_workspace(in, bytes);
      options.workspace_bytes = bytes;
      options.workspace = array_of(scratch, {.name = "workspace", .format = format_id::e8m0}).data;
    }
  }
  c::run(in.size(), [&] { return samebits_quantize(&from, &outputs, &options, &where); });
  return results.objects(statistics ? tuple_of(found) : nb::none());
}

nb::object dequantize(nb::handle codes, int format, nb::handle scales, int scale_format,
                      std::int64_t tile_rows, std::int64_t tile_cols, nb::handle out, int to,
                      nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const array in = array_of(codes, {.name = "codes", .format = format_of(format), .stream = s});
  const array by =
      array_of(scales, {.name = "scales", .format = format_of(scale_format), .stream = s});
  output target;
  if (out.is_none()) {
    target = new_output(codes, in, static_cast<format_id>(to));
  } else {
    const argument what = {
        .name = "out", .needs = access::write, .format = format_of(to), .stream = s};
    target = {nb::borrow(out), array_of(out, what)};
    check_shape({&target.a, "out"}, in.dims, in.shape);
    if (target.a.library != nullptr) mark_written(out);
  }
  const samebits_view from = c::view_of({&in, "codes"});
  const samebits_view scale = c::view_of({&by, "scales"});
  const samebits_view into = c::view_of({&target.a, "out"});
  const samebits_tile tile = {tile_rows, tile_cols};
  const samebits_executor where = c::executor_of(threads, backend, stream, in, in.size());
  c::run(in.size(), [&] { return samebits_dequantize(&from, &scale, &into, &tile, &where); });
  return target.object;
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
    c::check(samebits_recipe_at(i, &preset));
    result.append(dict_of(preset));
  }
  return result;
}

// Describes a history of delayed scaling: dense, writable binary32 numbers in host memory.
array history_of(nb::handle history) {
  array a = array_of(history, {.name = "history", .needs = access::write});
  const bool dense = a.dims == 1 && (a.shape[0] < 2 || a.strides[0] == 1);
  if (!dense || a.format != format_id::fp32 || a.memory != memory_space::host) {
    raise_invalid("history: a contiguous float32 array with one axis is expected");
  }
  return a;
}

void delayed_observe(nb::handle history, double amax) {
  const host_guard guard;
  const array h = history_of(history);
  c::check(samebits_delayed_observe(reinterpret_cast<float*>(h.data),
                                    static_cast<std::size_t>(h.shape[0]),
                                    static_cast<float>(amax)));
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
  c::check(samebits_delayed_update(&state, reinterpret_cast<float*>(h.data),
                                   static_cast<std::size_t>(h.shape[0]), &settings));
  return nb::make_tuple(state.inverse_scale, state.scale);
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
