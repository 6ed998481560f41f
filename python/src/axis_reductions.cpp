// Sums, means and norms over axes.
#include "samebits/axis_reductions.hpp"

#include <algorithm>
#include <vector>

#include "call.hpp"

namespace samebits::python {
namespace {

nb::object reduce_axes(nb::handle x, nb::handle axis, nb::handle how, nb::handle format,
                       nb::handle out, nb::handle where) {
  const array a = array_of(x, {.name = "x", .format = format_of(format)});
  const auto options = options_of<axis_reduction_options>(how);
  std::vector<int> axes;
  for (const nb::handle item : axis) {
    const int given = integer_of<int>(item, "axis");
    axes.push_back(given < 0 && given >= -a.dims ? given + a.dims : given);
  }
  int dims = 0;
  std::int64_t shape[max_dims];
  for (int i = 0; i < a.dims; ++i) {
    const bool reduced = axes.empty() || std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced) shape[dims++] = a.shape[i];
  }
  const output result = output_like(x, a, dims, shape, a.format, out, nullptr);
  const matrix_view view = view_of({&result.a, "out"});
  const executor on = executor_of(where, a, a.size());
  const auto size = static_cast<std::size_t>(a.dims);
  const const_tensor_view in{a.data, a.format, {a.shape, size}, {a.strides, size}, a.memory};
  run(a.size(), [&] { samebits::reduce_axes(in, axes, view, options, on); }, {{"axes", "axis"}});
  return result.object;
}

}  // namespace

void bind_axis_reductions(nb::module_& m) {
  def(m, "reduce_axes", &reduce_axes, "Returns a sum, mean or norm over axes of an array.");
}

}  // namespace samebits::python
