// convert(). Calls on small arrays are common, so convert() does little besides the library call.
#include "c_call.hpp"

namespace samebits::python {
namespace {

void convert_slices(const array& in, const array& out, samebits_convert_options& options,
                    const samebits_executor& where) {
  const operand both[] = {{&in, "x"}, {&out, "out"}};
  const slices s = slices_of(in.dims, in.shape, both, 2);
  if (s.loops == 0) {
    const std::int64_t start[2] = {};
    const samebits_view from = c::view_of(s, 0, in, start);
    const samebits_view to = c::view_of(s, 1, out, start);
    return c::run(in.size(), [&] { return samebits_convert(&from, &to, &options, &where); });
  }
  check_overlap(both[1], both, 1);
  const std::uint64_t first = options.random.offset;
  c::run(in.size(), [&] {
    std::int32_t status = SAMEBITS_OK;
    s.for_each([&](const std::int64_t* offsets, std::int64_t flat) {
      if (status != SAMEBITS_OK) return;
      const samebits_view from = c::view_of(s, 0, in, offsets);
      const samebits_view to = c::view_of(s, 1, out, offsets);
      options.random.offset = first + static_cast<std::uint64_t>(flat);
      status = samebits_convert(&from, &to, &options, &where);
    });
    return status;
  });
}

void convert_array(const array& in, const array& out, samebits_convert_options& options,
                   const samebits_executor& where) {
  if (options.random.has_pitch == 0) return convert_slices(in, out, options, where);
  const samebits_view from =
      c::view_of({&in, "x"});  // [leading axes, last axis], for the random bits
  const samebits_view to = c::view_of({&out, "out"});
  c::run(in.size(), [&] { return samebits_convert(&from, &to, &options, &where); });
}

// convert() without options, into a new array.
nb::object convert_default(nb::handle x, nb::handle to) {
  const format_id format = format_named(to, "to");
  const array in = array_of(x, {.name = "x"});
  const output out = new_output(x, in, format);
  samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
  convert_array(in, out.a, options,
                c::executor_of(nb::none(), nb::none(), nb::none(), in, in.size()));
  return out.object;
}

nb::object convert(nb::handle x, nb::handle to, int packed_rule, int format, nb::handle random,
                   nb::handle out, nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const cuda_stream = stream_of(stream);
  const format_id to_format = format_named(to, "to");
  const array in = array_of(x, {.name = "x", .format = format_of(format), .stream = cuda_stream});
  output target;
  if (out.is_none()) {
    target = new_output(x, in, to_format);
  } else {
    const argument what = {
        .name = "out", .needs = access::write, .format = to_format, .stream = cuda_stream};
    target = {nb::borrow(out), array_of(out, what)};
    check_shape({&target.a, "out"}, in.dims, in.shape);
    if (target.a.library != nullptr) mark_written(out);
  }
  const c::rule r(packed_rule);
  samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
  options.rounding = r.rounding;
  options.overflow = r.overflow;
  options.nan_policy = r.nan_policy;
  options.random = c::random_of(random);
  convert_array(in, target.a, options, c::executor_of(threads, backend, stream, in, in.size()));
  return target.object;
}

}  // namespace

void bind_convert(nb::module_& m) {
  m.def("convert_default", &convert_default, nb::arg("x").none(), nb::arg("to").none(),
        "Converts an array into a new one, to nearest even.");
  m.def("convert", &convert, nb::arg("x").none(), nb::arg("to").none(), nb::arg("rule"),
        nb::arg("format"), nb::arg("random").none(), nb::arg("out").none(),
        nb::arg("threads").none(), nb::arg("backend").none(), nb::arg("stream").none(),
        "Converts an array; samebits.convert() describes the arguments.");
}

}  // namespace samebits::python
