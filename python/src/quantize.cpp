// Quantization, dequantization, recipes, delayed scaling.
#include "samebits/quantize.hpp"

#include "call_arrays.hpp"
#include "samebits/delayed_scaling.hpp"
#include "samebits/operators.hpp"
#include "samebits/recipe.hpp"

namespace samebits::python {
namespace {

constexpr const char* output_names[] = {"out.codes", "out.scales", "out.codes_transposed",
                                        "out.scales_transposed", "out.tensor_scale"};

// Codes, scales, transposed codes, transposed scales and the tensor's scale: those of an earlier call,
// or new ones.
struct quantized_arrays {
  static constexpr int count = 5, tensor_scale = 4;
  output each[count];

  // `out` is None or a tuple of the arrays, in which those of the transpose and the tensor's scale may
  // be None.
  quantized_arrays(nb::handle x, const viewed& in, nb::handle out, bool transposed, bool two_levels,
                   const tile_shape& tile, format_id to, format_id scale_format, void* stream) {
    const format_id formats[] = {to, scale_format, to, scale_format, format_id::fp32};
    if (!out.is_none()) {
      for (int i = 0; i < count; ++i) {
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
    const std::int64_t shapes[][2] = {
        {}, {s.rows, s.cols}, {m.cols, m.rows}, {s.cols, s.rows}, {1, 1}};
    each[0] = new_output(x, in.a, to);
    for (int i = 1; i < (transposed ? 4 : 2); ++i) {
      each[i] = new_output(x, in.a, 2, shapes[i], formats[i]);
    }
    if (two_levels) {
      each[tensor_scale] = new_output(x, in.a, 2, shapes[tensor_scale], formats[tensor_scale]);
    }
  }

  [[nodiscard]] quantize_outputs outputs() const {
    const auto view = [&](int i) {
      return each[i].object.is_valid() ? view_of({&each[i].a, output_names[i]}) : matrix_view{};
    };
    return {.codes = view(0),
            .scales = view(1),
            .codes_transposed = view(2),
            .scales_transposed = view(3),
            .tensor_scale = view(tensor_scale)};
  }
  [[nodiscard]] nb::object object(int i) const { return object_of(each[i]); }
};

// Refuses the rules of a samebits.Recipe by which no matrix could be quantized.
void check_recipe(nb::handle rules) {
  const auto given = options_of<recipe>(rules);
  run_to_end(0, [&] { check(given); }, {{"outputs", "scale_format"}, {"scales", "scale_format"}});
}

nb::object tuple_of(const quantize_statistics& s) {
  const host_guard guard;  // a subnormal float stays one as a Python number
  return nb::make_tuple(s.elements, s.zeros, s.nan, s.inf, s.underflowed, s.saturated, s.amax,
                        s.min_nonzero, s.signal, s.noise);
}

nb::tuple quantize(nb::handle x, nb::handle format, nb::handle out, nb::handle transposed,
                   nb::handle to, nb::handle scale_format, nb::handle rules, nb::handle how,
                   nb::handle inverse_scales, nb::handle tensor_scale, nb::handle with_statistics,
                   nb::handle where) {
  void* const s = stream_in(where);
  const bool statistics = flag_of(with_statistics, "statistics");
  const viewed in(x, {.name = "x", .format = format_of(format), .stream = s});
  const bool on_device = in.a.memory == memory_space::device;
  const auto rule_count = static_cast<int>(nb::len(rules));
  auto options = options_by<quantize_options>([&](int i, const char*) {
    return i < rule_count ? item(rules, i) : item(how, i - rule_count);
  });
  const auto given = [&](nb::handle array, const char* name) {
    return array.is_none() ? viewed()
                           : viewed(array, {.name = name, .format = format_id::fp32, .stream = s});
  };
  const viewed inverse = given(inverse_scales, "inverse_scales");
  const viewed of_tensor = given(tensor_scale, "tensor_scale");
  if (statistics && on_device) {
    raise_invalid("statistics: they need host memory; pass statistics=False for device arrays");
  }
  const quantized_arrays results(x, in, out, flag_of(transposed, "transposed"),
                                 has_two_levels(options.scale) && inverse_scales.is_none(),
                                 options.tile, format_named(to, "to"),
                                 format_named(scale_format, "scale_format"), s);
  quantize_statistics found;
  quantize_outputs outputs = results.outputs();
  outputs.statistics = statistics ? &found : nullptr;
  options.inverse_scales = inverse.view;
  options.tensor_scale = of_tensor.view;
  const executor on = executor_of(where, in.a, in.a.size());
  const bool made = out.is_none();
  const argument_names names = {{"outputs", "scale_format"},
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
                        results.object(quantized_arrays::tensor_scale),
                        statistics ? tuple_of(found) : nb::none(), name(results.each[0].a.format));
}

// Returns codes and scales that call(outputs, options, executor) computes from rows and quantizes to
// nearest even; `in` is the name of the first array in messages.
template <class Call>
quantized_arrays quantized_rows(const call_arrays& a, const char* in, nb::handle to,
                                nb::handle scale_format, nb::handle rules,
                                nb::handle overflow_policy, const Call& call) {
  auto options = options_of<quantize_options>(rules);
  options.overflow = enumerator_of<overflow>(overflow_policy, "overflow");
  quantized_arrays results(a.like, a.first, nb::none(), false, false, options.tile,
                           format_named(to, "to"), format_named(scale_format, "scale_format"),
                           a.stream);
  const quantize_outputs outputs = results.outputs();
  const auto size = a.first.a.size();
  const executor on = executor_of(a.where, a.first.a, size);
  run(size, [&] { call(outputs, options, on); },
      {{"in", in}, {"outputs", "scale_format"}, {"codes", "to"}, {"scales", "scale_format"}});
  return results;
}

// Codes and scales of f(gate) * up.
nb::tuple gated_quantize(nb::handle gate, nb::handle up, nb::handle function_name, nb::handle to,
                         nb::handle scale_format, nb::handle rules, nb::handle overflow_policy) {
  const auto f = enumerator_of<function>(function_name, "function");
  const call_arrays a(gate, "gate");
  const viewed second(up, {.name = "up"});
  const quantized_arrays results =
      quantized_rows(a, "gate", to, scale_format, rules, overflow_policy,
                     [&](const auto& outputs, const auto& options, const executor& on) {
                       samebits::gated_quantize(f, a.first.view, second.view, outputs, options,
                                                function_rule::torch_2_11, on);
                     });
  return nb::make_tuple(results.object(0), results.object(1));
}

// Codes and scales of a norm of x, or of x + added; then x + added, mean and rstd, or None. `norm` is
// (RMSNorm, options, weight, bias), `to` as in gated_quantize.
nb::tuple norm_quantize(nb::handle x, nb::handle added, nb::tuple norm, nb::handle to,
                        nb::handle scale_format, nb::handle rules, nb::handle overflow_policy) {
  const bool rms = flag_of(norm[0], "rms");
  const auto how = options_of<layer_norm_options>(norm[1]);
  const call_arrays a(x, "x");
  const viewed second = a.operand(added, "added"), weight = a.operand(norm[2], "weight"),
               bias = a.operand(norm[3], "bias");
  const output sum = added.is_none() ? output{} : a.result(),
               mean = rms ? output{} : a.new_column(), rstd = a.new_column();
  const matrix_view h = added.is_none() ? matrix_view{} : view_of(sum, "sum");
  const quantized_arrays results = quantized_rows(
      a, "in", to, scale_format, rules, overflow_policy,
      [&](const auto& outputs, const auto& options, const executor& on) {
        if (rms) {
          return rms_norm_quantize(a.first.view, second.view, weight.view, h, a.column(rstd),
                                   outputs, options, how, on);
        }
        layer_norm_quantize(a.first.view, second.view, weight.view, bias.view, h, a.column(mean),
                            a.column(rstd), outputs, options, how, on);
      });
  return nb::make_tuple(results.object(0), results.object(1), object_of(sum), object_of(mean),
                        object_of(rstd));
}

nb::object dequantize(nb::handle codes, nb::handle format, nb::handle scales,
                      nb::handle scale_format, nb::handle tile, nb::handle scale,
                      nb::handle tensor_scale, nb::handle out, nb::handle to, nb::handle where) {
  void* const s = stream_in(where);
  const tile_shape shape = tile_of(tile, "tile");
  const viewed in(codes, {.name = "codes", .format = format_of(format), .stream = s});
  const viewed by(
      scales, {.name = "scales", .format = format_of(scale_format, "scale_format"), .stream = s});
  const output target = output_like(codes, in.a, format_named(to, "to"), out, s);
  const matrix_view into = view_of({&target.a, "out"});
  const executor on = executor_of(where, in.a, in.a.size());
  second_level level = {enumerator_of<scale_rule>(scale, "scale")};
  viewed of_tensor;
  if (!tensor_scale.is_none()) {
    of_tensor =
        viewed(tensor_scale, {.name = "tensor_scale", .format = format_id::fp32, .stream = s});
    level.tensor_scale = of_tensor.view;
  }
  run(in.a.size(), [&] { samebits::dequantize(in.view, by.view, into, shape, level, on); });
  return target.object;
}

nb::list recipes() {
  nb::list result;
  for (const recipe_preset& p : recipe_presets) {
    nb::dict d = dict_of(p.rules);
    d["name"] = p.name;
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

delayed_settings delayed_settings_of(nb::handle values) {
  const auto settings = options_of<delayed_settings>(values);
  if (settings.to != format_id::e4m3 && settings.to != format_id::e5m2) {
    raise_invalid("to: e4m3 or e5m2 is expected; got " + std::string(name(settings.to)));
  }
  return settings;
}

nb::tuple delayed_update(double inverse_scale, double scale, nb::handle history,
                         nb::handle settings) {
  const std::span<float> amaxes = history_of(history);
  const host_guard guard;
  const delayed_scale state = {static_cast<float>(inverse_scale), static_cast<float>(scale)};
  const delayed_scale next = updated(state, amaxes, delayed_settings_of(settings));
  return nb::make_tuple(next.inverse_scale, next.scale);
}

}  // namespace

void bind_quantize(nb::module_& m) {
  def(m, "gated_quantize", &gated_quantize, "Returns codes and scales of f(gate) * up.");
  def(m, "norm_quantize", &norm_quantize,
      "Returns codes and scales of a norm, and its statistics.");
  def(m, "quantize", &quantize,
      "Quantizes an array; returns codes, scales, both transposed or None, the tensor's scale "
      "or None, the fields of samebits.Statistics or None, and the codes' format.");
  def(m, "dequantize", &dequantize, "Dequantizes codes.");
  m.def("recipes", &recipes, "Returns the fields of each samebits.Recipe preset.");
  def(m, "check_recipe", &check_recipe, "Refuses rules that no input could be quantized by.");
  def(m, "delayed_observe", &delayed_observe, "Records an amax in history[0].");
  def(m, "delayed_update", &delayed_update, "Returns the next scales and advances the history.");
  m.def(
      "check_delayed_settings", [](nb::handle settings) { delayed_settings_of(settings); },
      nb::arg("settings"), "Refuses settings of samebits.DelayedScaling.");
}

}  // namespace samebits::python
