// Operations on lists of arrays.
#include "tensor_list.hpp"

#include <algorithm>
#include <utility>

namespace samebits::python {

listed_arrays::listed_arrays(nb::list arrays, nb::list names, const char* name, access needs,
                             int format, void* stream) {
  const std::size_t count = nb::len(arrays);
  arrays_.reserve(count);
  std::vector<list_tensor> tensors;
  tensors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto text = nb::cast<std::string>(nb::str(names[i]));
    const std::string label = std::string(name) + "[" + text + "]";
    arrays_.push_back(array_of(
        arrays[i],
        {.name = label.c_str(), .needs = needs, .format = format_of(format), .stream = stream}));
    const array& a = arrays_.back();
    elements_ += a.size();
    tensors.push_back({.view = view_of({&a, label.c_str()}), .name = std::move(text)});
  }
  const auto of_torch = [](const array& a) { return a.library != nullptr; };
  if (needs == access::write && std::ranges::any_of(arrays_, of_torch)) mark_written(arrays);
  run_to_end(0, [&] { list_ = tensor_list(std::move(tensors)); });
}

executor listed_arrays::on(nb::handle threads, nb::handle backend, nb::handle stream) const {
  return executor_of(threads, backend, stream, arrays_.empty() ? array() : arrays_.front(),
                     elements_);
}

nb::tuple tuple_of(const unscale_report& r) {
  return nb::make_tuple(r.elements, r.nonfinite, r.overflowed, r.first_bad, r.amax_bits);
}

namespace {

nb::tuple tuple_of(const tensor_statistics& s) {
  return nb::make_tuple(s.elements, s.nan, s.inf, s.zeros, s.subnormals, s.amax_bits, s.squares,
                        s.norm());
}

template <class Numbers>
nb::list list_of(const Numbers& numbers) {
  nb::list list;
  for (const auto n : numbers) list.append(n);
  return list;
}

// Returns (total, statistics of each tensor, position of the first bad tensor, exponents).
nb::tuple inspect(nb::list arrays, nb::list names, int format, bool distribution,
                  nb::handle threads, nb::handle backend, nb::handle stream) {
  const listed_arrays list(arrays, names, "tensors", access::read, format, stream_of(stream));
  const executor where = list.on(threads, backend, stream);
  inspect_report report;
  run(list.elements(), [&] {
    report = samebits::inspect(
        list.get(),
        {.counts = distribution ? inspect_counts::distribution : inspect_counts::nonfinite}, where);
  });
  nb::list statistics;
  for (const tensor_statistics& s : report.tensors) statistics.append(tuple_of(s));
  return nb::make_tuple(tuple_of(report.total), statistics, report.first_bad,
                        list_of(report.exponents));
}

nb::tuple l2norm(nb::list arrays, nb::list names, int format, nb::handle threads,
                 nb::handle backend, nb::handle stream) {
  const listed_arrays list(arrays, names, "tensors", access::read, format, stream_of(stream));
  const executor where = list.on(threads, backend, stream);
  norm_report report;
  run(list.elements(), [&] { report = samebits::l2norm(list.get(), where); });
  return nb::make_tuple(report.total, list_of(report.tensors));
}

nb::tuple unscale(nb::list arrays, nb::list names, int format, double inverse_scale,
                  nb::handle threads, nb::handle backend, nb::handle stream) {
  const listed_arrays list(arrays, names, "tensors", access::write, format, stream_of(stream));
  const executor where = list.on(threads, backend, stream);
  unscale_report report;
  run_to_end(list.elements(), [&] {
    report = samebits::unscale(list.get(), static_cast<float>(inverse_scale), where);
  });
  return python::tuple_of(report);
}

void scale(nb::list arrays, nb::list names, int format, double factor, nb::handle threads,
           nb::handle backend, nb::handle stream) {
  const listed_arrays list(arrays, names, "tensors", access::write, format, stream_of(stream));
  const executor where = list.on(threads, backend, stream);
  run_to_end(list.elements(),
             [&] { samebits::scale(list.get(), static_cast<float>(factor), where); });
}

nb::tuple clip(nb::list arrays, nb::list names, int format, double max_norm, nb::handle threads,
               nb::handle backend, nb::handle stream) {
  const listed_arrays list(arrays, names, "tensors", access::write, format, stream_of(stream));
  const executor where = list.on(threads, backend, stream);
  clip_report report;
  run_to_end(list.elements(), [&] { report = samebits::clip(list.get(), max_norm, where); });
  const host_guard guard;  // a subnormal factor stays one as a Python number
  return nb::make_tuple(report.norm, report.factor);
}

void accumulate(nb::list sums, nb::list arrays, nb::list names, int format, nb::handle scales,
                nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const listed_arrays acc(sums, names, "acc", access::write, -1, s);
  const listed_arrays gradients(arrays, names, "gradients", access::read, format, s);
  array factors;
  accumulate_options options;
  if (!scales.is_none()) {
    factors = array_of(scales, {.name = "scales", .format = format_id::fp32, .stream = s});
    const auto count = static_cast<std::int64_t>(acc.get().size());
    check_shape({&factors, "scales"}, 1, &count);
    if (count > 1 && factors.strides[0] != 1) {
      raise_invalid("scales: a contiguous array is expected");
    }
    options.scales = reinterpret_cast<const float*>(factors.data);
  }
  const executor where = acc.on(threads, backend, stream);
  run_to_end(acc.elements(),
             [&] { samebits::accumulate(acc.get(), gradients.get(), options, where); });
}

void axpby(double a, nb::list x, double b, nb::list y, nb::list out, nb::list names,
           nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const listed_arrays left(x, names, "x", access::read, -1, s);
  const listed_arrays right(y, names, "y", access::read, -1, s);
  const listed_arrays into(out, names, "out", access::write, -1, s);
  const executor where = into.on(threads, backend, stream);
  run_to_end(into.elements(), [&] {
    samebits::axpby(static_cast<float>(a), left.get(), static_cast<float>(b), right.get(),
                    into.get(), where);
  });
}

void cast(nb::list from, int format, nb::list to, int to_format, nb::list names, int packed_rule,
          nb::handle random, nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const listed_arrays in(from, names, "tensors", access::read, format, s);
  const listed_arrays out(to, names, "out", access::write, to_format, s);
  const auto options = rounding_options<convert_options>(packed_rule, random);
  const executor where = in.on(threads, backend, stream);
  run(in.elements(), [&] { samebits::cast(in.get(), out.get(), options, where); },
      {{"from", "tensors"}, {"to", "out"}});
}

}  // namespace

void bind_tensor_list(nb::module_& m) {
  using nb::arg;
  m.def("inspect", &inspect, arg("tensors"), arg("names"), arg("format"), arg("distribution"),
        arg("threads").none(), arg("backend").none(), arg("stream").none(),
        "Returns the fields of samebits.InspectReport.");
  m.def("l2norm", &l2norm, arg("tensors"), arg("names"), arg("format"), arg("threads").none(),
        arg("backend").none(), arg("stream").none(), "Returns the norm of all and of each.");
  m.def("unscale", &unscale, arg("tensors"), arg("names"), arg("format"), arg("inverse_scale"),
        arg("threads").none(), arg("backend").none(), arg("stream").none(),
        "Unscales in place; returns the fields of samebits.UnscaleReport.");
  m.def("scale", &scale, arg("tensors"), arg("names"), arg("format"), arg("factor"),
        arg("threads").none(), arg("backend").none(), arg("stream").none(), "Scales in place.");
  m.def("clip", &clip, arg("tensors"), arg("names"), arg("format"), arg("max_norm"),
        arg("threads").none(), arg("backend").none(), arg("stream").none(),
        "Clips in place by the common norm; returns norm and factor.");
  m.def("accumulate", &accumulate, arg("acc"), arg("gradients"), arg("names"), arg("format"),
        arg("scales").none(), arg("threads").none(), arg("backend").none(), arg("stream").none(),
        "Accumulates gradients in place.");
  m.def("axpby", &axpby, arg("a"), arg("x"), arg("b"), arg("y"), arg("out"), arg("names"),
        arg("threads").none(), arg("backend").none(), arg("stream").none(),
        "Writes a * x + b * y.");
  m.def("cast", &cast, arg("tensors"), arg("format"), arg("out"), arg("to"), arg("names"),
        arg("rule"), arg("random").none(), arg("threads").none(), arg("backend").none(),
        arg("stream").none(), "Converts tensor by tensor.");
}

}  // namespace samebits::python
