// convert(). Calls on small arrays are common, so convert() does little besides the library call.
#include "samebits/convert.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

void convert_slices(const array& in, const array& out, convert_options& options,
                    const executor& where) {
  const operand both[] = {{&in, "x"}, {&out, "out"}};
  const auto call = [&](const auto& view) { samebits::convert(view(0), view(1), options, where); };
  run_slices(in.dims, in.shape, both, 1, 2, options.random, call);
}

void convert_array(const array& in, const array& out, convert_options& options,
                   const executor& where) {
  if (!options.random.pitch) return convert_slices(in, out, options, where);
  const matrix_view from = view_of({&in, "x"});  // [leading axes, last axis], for the random bits
  const matrix_view to = view_of({&out, "out"});
  run(in.size(), [&] { samebits::convert(from, to, options, where); });
}

// convert() without options, into a new array.
nb::object convert_default(nb::handle x, nb::handle to) {
  const format_id format = format_named(to, "to");
  const array in = array_of(x, {.name = "x"});
  const output out = new_output(x, in, format);
  convert_options options;
  convert_array(in, out.a, options, executor_of(nb::none(), nb::none(), nb::none(), in, in.size()));
  return out.object;
}

nb::object convert(nb::handle x, nb::handle to, nb::handle how, nb::handle format, nb::handle out,
                   nb::handle where) {
  void* const on = stream_in(where);
  const format_id to_format = format_named(to, "to");
  const array in = array_of(x, {.name = "x", .format = format_of(format), .stream = on});
  const output target = output_like(x, in, to_format, out, on);
  auto options = options_of<convert_options>(how);
  convert_array(in, target.a, options, executor_of(where, in, in.size()));
  return target.object;
}

}  // namespace

void bind_convert(nb::module_& m) {
  def(m, "convert_default", &convert_default, "Converts an array into a new one, to nearest even.");
  def(m, "convert", &convert, "Converts an array; samebits.convert() describes the arguments.");
}

}  // namespace samebits::python
