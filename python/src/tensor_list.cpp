// Operations on lists of arrays.
#include "tensor_list.hpp"

#include <algorithm>
#include <utility>

namespace samebits::python {

list_tensor tensor_of(nb::handle x, nb::handle name, const char* list, argument what, array& a) {
  list_tensor t = {.name = nb::cast<std::string>(nb::str(name))};
  const std::string label = std::string(list) + "[" + t.name + "]";
  what.name = label.c_str();
  a = array_of(x, what);
  t.view = view_of({&a, what.name});
  return t;
}

void mark_written(nb::handle list, const std::vector<array>& arrays) {
  const auto of_torch = [](const array& a) { return a.library != nullptr; };
  if (std::ranges::any_of(arrays, of_torch)) mark_written(list);
}

listed_arrays::listed_arrays(nb::list arrays, nb::list names, const char* name, access needs,
                             nb::handle format, nb::handle where) {
  const argument what = {.needs = needs, .format = format_of(format), .stream = stream_in(where)};
  const std::size_t count = nb::len(arrays);
  arrays_.reserve(count);
  std::vector<list_tensor> tensors;
  tensors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back(tensor_of(arrays[i], names[i], name, what, arrays_.emplace_back()));
    elements_ += arrays_.back().size();
  }
  on_ = executor_of(where, arrays_.empty() ? array() : arrays_.front(), elements_);
  if (needs == access::write) mark_written(arrays, arrays_);
  run_to_end(0, [&] { list_ = tensor_list(std::move(tensors)); });
}

nb::object name_at(nb::list names, std::int64_t position) {
  return position < 0 ? nb::none() : nb::object(names[static_cast<std::size_t>(position)]);
}

nb::tuple tuple_of(const unscale_report& r, nb::list names) {
  return nb::make_tuple(r.elements, r.nonfinite, r.overflowed, name_at(names, r.first_bad),
                        r.amax_bits);
}

namespace {

nb::tuple tuple_of(const tensor_statistics& s) {
  return nb::make_tuple(s.elements, s.nan, s.inf, s.zeros, s.subnormals, s.amax_bits, s.squares,
                        s.norm());
}

// Returns (total, statistics of each tensor, name of the first bad tensor, exponents).
nb::tuple inspect(nb::list arrays, nb::list names, nb::handle format, nb::handle distribution,
                  nb::handle where) {
  const auto counts = flag_of(distribution, "distribution") ? inspect_counts::distribution
                                                            : inspect_counts::nonfinite;
  const listed_arrays list(arrays, names, "tensors", access::read, format, where);
  inspect_report report;
  run(list.elements(),
      [&] { report = samebits::inspect(list.get(), {.counts = counts}, list.on()); });
  return nb::make_tuple(
      tuple_of(report.total),
      list_of(report.tensors, [](const tensor_statistics& s) { return tuple_of(s); }),
      name_at(names, report.first_bad), list_of(report.exponents));
}

nb::tuple l2norm(nb::list arrays, nb::list names, nb::handle format, nb::handle where) {
  const listed_arrays list(arrays, names, "tensors", access::read, format, where);
  norm_report report;
  run(list.elements(), [&] { report = samebits::l2norm(list.get(), list.on()); });
  return nb::make_tuple(report.total, list_of(report.tensors));
}

nb::tuple unscale(nb::list arrays, nb::list names, nb::handle format, nb::handle inverse_scale,
                  nb::handle where) {
  const double factor = number_of(inverse_scale, "inverse_scale");
  const listed_arrays list(arrays, names, "tensors", access::write, format, where);
  unscale_report report;
  run_to_end(list.elements(), [&] {
    report = samebits::unscale(list.get(), static_cast<float>(factor), list.on());
  });
  return python::tuple_of(report, names);
}

void scale(nb::list arrays, nb::list names, nb::handle format, nb::handle factor,
           nb::handle where) {
  const double by = number_of(factor, "factor");
  const listed_arrays list(arrays, names, "tensors", access::write, format, where);
  run_to_end(list.elements(),
             [&] { samebits::scale(list.get(), static_cast<float>(by), list.on()); });
}

nb::tuple clip(nb::list arrays, nb::list names, nb::handle format, nb::handle max_norm,
               nb::handle where) {
  const double most = number_of(max_norm, "max_norm");
  const listed_arrays list(arrays, names, "tensors", access::write, format, where);
  clip_report report;
  run_to_end(list.elements(), [&] { report = samebits::clip(list.get(), most, list.on()); });
  const host_guard guard;  // a subnormal factor stays one as a Python number
  return nb::make_tuple(report.norm, report.factor);
}

void accumulate(nb::list sums, nb::list arrays, nb::list names, nb::handle format,
                nb::handle scales, nb::handle where) {
  const listed_arrays acc(sums, names, "acc", access::write, nb::none(), where);
  const listed_arrays gradients(arrays, names, "gradients", access::read, format, where);
  array factors;
  accumulate_options options;
  if (!scales.is_none()) {
    factors =
        array_of(scales, {.name = "scales", .format = format_id::fp32, .stream = stream_in(where)});
    const auto count = static_cast<std::int64_t>(acc.get().size());
    check_shape({&factors, "scales"}, 1, &count);
    if (count > 1 && factors.strides[0] != 1) {
      raise_invalid("scales: a contiguous array is expected");
    }
    options.scales = reinterpret_cast<const float*>(factors.data);
  }
  run_to_end(acc.elements(),
             [&] { samebits::accumulate(acc.get(), gradients.get(), options, acc.on()); });
}

void axpby(nb::handle a, nb::list x, nb::handle b, nb::list y, nb::list out, nb::list names,
           nb::handle where) {
  const double left_factor = number_of(a, "a");
  const double right_factor = number_of(b, "b");
  const listed_arrays left(x, names, "x", access::read, nb::none(), where);
  const listed_arrays right(y, names, "y", access::read, nb::none(), where);
  const listed_arrays into(out, names, "out", access::write, nb::none(), where);
  run_to_end(into.elements(), [&] {
    samebits::axpby(static_cast<float>(left_factor), left.get(), static_cast<float>(right_factor),
                    right.get(), into.get(), into.on());
  });
}

void cast(nb::list from, nb::handle format, nb::list to, nb::handle to_format, nb::list names,
          nb::handle how, nb::handle where) {
  const auto options = options_of<convert_options>(how);
  const listed_arrays in(from, names, "tensors", access::read, format, where);
  const listed_arrays out(to, names, "out", access::write, to_format, where);
  run(in.elements(), [&] { samebits::cast(in.get(), out.get(), options, in.on()); },
      {{"from", "tensors"}, {"to", "out"}});
}

}  // namespace

void bind_tensor_list(nb::module_& m) {
  def(m, "inspect", &inspect, "Returns the fields of samebits.InspectReport.");
  def(m, "l2norm", &l2norm, "Returns the norm of all and of each.");
  def(m, "unscale", &unscale, "Unscales in place; returns the fields of samebits.UnscaleReport.");
  def(m, "scale", &scale, "Scales in place.");
  def(m, "clip", &clip, "Clips in place by the common norm; returns norm and factor.");
  def(m, "accumulate", &accumulate, "Accumulates in place.");
  def(m, "axpby", &axpby, "Writes a * x + b * y.");
  def(m, "cast", &cast, "Converts tensor by tensor.");
}

}  // namespace samebits::python
