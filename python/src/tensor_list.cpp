// Operations on lists of arrays.
#include "tensor_list.hpp"

#include <algorithm>

namespace samebits::python {

tensor_list::tensor_list(nb::list arrays, nb::list names, const char* name, access needs,
                         int format, void* stream) {
  const std::size_t count = nb::len(arrays);
  names_.reserve(count);
  arrays_.reserve(count);
  std::vector<samebits_list_tensor> tensors;
  tensors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    names_.push_back(nb::cast<std::string>(nb::str(names[i])));
    const std::string label = std::string(name) + "[" + names_.back() + "]";
    arrays_.push_back(array_of(
        arrays[i],
        {.name = label.c_str(), .needs = needs, .format = format_of(format), .stream = stream}));
    const array& a = arrays_.back();
    elements_ += a.size();
    tensors.push_back({c::view_of({&a, label.c_str()}), names_.back().c_str(), 0, 0});
  }
  const auto of_torch = [](const array& a) { return a.library != nullptr; };
  if (needs == access::write && std::ranges::any_of(arrays_, of_torch)) mark_written(arrays);
  c::check(samebits_tensor_list_create(tensors.data(), tensors.size(), &list_));
}

const array& tensor_list::first() const {
  static const array none = {};
  return arrays_.empty() ? none : arrays_.front();
}

nb::tuple tuple_of(const samebits_unscale_report& r) {
  return nb::make_tuple(r.elements, r.nonfinite, r.overflowed, r.first_bad, r.amax_bits);
}

namespace {

nb::tuple tuple_of(const samebits_tensor_statistics& s) {
  return nb::make_tuple(s.elements, s.nan, s.inf, s.zeros, s.subnormals, s.amax_bits, s.squares,
                        s.norm);
}

// Returns (total, statistics of each tensor, position of the first bad tensor, exponents).
nb::tuple inspect(nb::list arrays, nb::list names, int format, bool distribution,
                  nb::handle threads, nb::handle backend, nb::handle stream) {
  const tensor_list list(arrays, names, "tensors", access::read, format, stream_of(stream));
  const samebits_executor where =
      c::executor_of(threads, backend, stream, list.first(), list.elements());
  samebits_inspect_report report = {};
  std::vector<samebits_tensor_statistics> each(list.size());
  const int counts =
      distribution ? SAMEBITS_INSPECT_COUNTS_DISTRIBUTION : SAMEBITS_INSPECT_COUNTS_NONFINITE;
  c::run(list.elements(), [&] {
    return samebits_tensor_list_inspect(list.get(), counts, &report, each.data(), each.size(),
                                        &where);
  });
  nb::list statistics;
  for (const samebits_tensor_statistics& s : each) statistics.append(tuple_of(s));
  nb::list exponents;
  for (const std::uint64_t n : report.exponents) exponents.append(n);
  return nb::make_tuple(tuple_of(report.total), statistics, report.first_bad, exponents);
}

nb::tuple l2norm(nb::list arrays, nb::list names, int format, nb::handle threads,
                 nb::handle backend, nb::handle stream) {
  const tensor_list list(arrays, names, "tensors", access::read, format, stream_of(stream));
  const samebits_executor where =
      c::executor_of(threads, backend, stream, list.first(), list.elements());
  double total = 0;
  std::vector<double> each(list.size());
  c::run(list.elements(), [&] {
    return samebits_tensor_list_l2norm(list.get(), &total, each.data(), each.size(), &where);
  });
  nb::list norms;
  for (const double n : each) norms.append(n);
  return nb::make_tuple(total, norms);
}

nb::tuple unscale(nb::list arrays, nb::list names, int format, double inverse_scale,
                  nb::handle threads, nb::handle backend, nb::handle stream) {
  const tensor_list list(arrays, names, "tensors", access::write, format, stream_of(stream));
  const samebits_executor where =
      c::executor_of(threads, backend, stream, list.first(), list.elements());
  samebits_unscale_report report = {};
  c::run_to_end(list.elements(), [&] {
    return samebits_tensor_list_unscale(list.get(), static_cast<float>(inverse_scale), &report,
                                        &where);
  });
  return python::tuple_of(report);
}

void scale(nb::list arrays, nb::list names, int format, double factor, nb::handle threads,
           nb::handle backend, nb::handle stream) {
  const tensor_list list(arrays, names, "tensors", access::write, format, stream_of(stream));
  const samebits_executor where =
      c::executor_of(threads, backend, stream, list.first(), list.elements());
  c::run_to_end(list.elements(), [&] {
    return samebits_tensor_list_scale(list.get(), static_cast<float>(factor), &where);
  });
}

nb::tuple clip(nb::list arrays, nb::list names, int format, double max_norm, nb::handle threads,
               nb::handle backend, nb::handle stream) {
  const tensor_list list(arrays, names, "tensors", access::write, format, stream_of(stream));
  const samebits_executor where =
      c::executor_of(threads, backend, stream, list.first(), list.elements());
  double norm = 0;
  float factor = 1;
  c::run_to_end(list.elements(), [&] {
    return samebits_tensor_list_clip(list.get(), max_norm, &norm, &factor, &where);
  });
  const host_guard guard;  // a subnormal factor stays one as a Python number
  return nb::make_tuple(norm, factor);
}

void accumulate(nb::list sums, nb::list arrays, nb::list names, int format, nb::handle scales,
                nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const tensor_list acc(sums, names, "acc", access::write, -1, s);
  const tensor_list gradients(arrays, names, "gradients", access::read, format, s);
  array factors;
  const float* each = nullptr;
  if (!scales.is_none()) {
    factors = array_of(scales, {.name = "scales", .format = format_id::fp32, .stream = s});
    const auto count = static_cast<std::int64_t>(acc.size());
    check_shape({&factors, "scales"}, 1, &count);
    if (count > 1 && factors.strides[0] != 1) {
      raise_invalid("scales: a contiguous array is expected");
    }
    each = reinterpret_cast<const float*>(factors.data);
  }
  const samebits_executor where =
      c::executor_of(threads, backend, stream, acc.first(), acc.elements());
  c::run_to_end(acc.elements(), [&] {
    return samebits_tensor_list_accumulate(acc.get(), gradients.get(), each, &where);
  });
}

void axpby(double a, nb::list x, double b, nb::list y, nb::list out, nb::list names,
           nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const tensor_list left(x, names, "x", access::read, -1, s);
  const tensor_list right(y, names, "y", access::read, -1, s);
  const tensor_list into(out, names, "out", access::write, -1, s);
  const samebits_executor where =
      c::executor_of(threads, backend, stream, into.first(), into.elements());
  c::run_to_end(into.elements(), [&] {
    return samebits_tensor_list_axpby(static_cast<float>(a), left.get(), static_cast<float>(b),
                                      right.get(), into.get(), &where);
  });
}

void cast(nb::list from, int format, nb::list to, int to_format, nb::list names, int packed_rule,
          nb::handle random, nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const tensor_list in(from, names, "tensors", access::read, format, s);
  const tensor_list out(to, names, "out", access::write, to_format, s);
  const c::rule r(packed_rule);
  samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
  options.rounding = r.rounding;
  options.overflow = r.overflow;
  options.nan_policy = r.nan_policy;
  options.random = c::random_of(random);
  const samebits_executor where =
      c::executor_of(threads, backend, stream, in.first(), in.elements());
  c::run(in.elements(),
         [&] { return samebits_tensor_list_cast(in.get(), out.get(), &options, &where); });
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
