// Array arithmetic: operands broadcast as in NumPy.
#include "samebits/array_arithmetic.hpp"

#include <algorithm>

#include "call.hpp"

namespace samebits::python {
namespace {

constexpr const char* operand_names[] = {"a", "b", "c"};

// Operands, result and flags of one call.
struct computation {
  array arrays[max_operands];
  operand operands[max_operands];
  int count = 0;

  const array& add(array a, const char* name) {
    arrays[count] = std::move(a);
    operands[count] = {&arrays[count], name};
    return arrays[count++];
  }
};

// The shape to which the operands broadcast.
struct common_shape {
  int dims = 0;
  std::int64_t sizes[max_dims];
};

common_shape broadcast(const computation& c) {
  common_shape s;
  for (int i = 0; i < c.count; ++i) s.dims = std::max(s.dims, c.arrays[i].dims);
  for (int axis = 0; axis < s.dims; ++axis) {
    s.sizes[axis] = 1;
    for (int i = 0; i < c.count; ++i) {
      const array& a = c.arrays[i];
      const int own = axis - (s.dims - a.dims);
      if (own < 0 || a.shape[own] == 1) continue;
      if (s.sizes[axis] != 1 && s.sizes[axis] != a.shape[own]) {
        std::string shapes;
        for (int k = 0; k < c.count; ++k) {
          shapes += std::string(k > 0 ? ", " : "") + nb::repr(shape_of(c.arrays[k])).c_str();
        }
        raise_invalid(std::string(c.operands[i].name) +
                      ": its shape does not broadcast with the other operands': " + shapes);
      }
      s.sizes[axis] = a.shape[own];
    }
  }
  return s;
}

// Returns (out, flags that any element raised, flags of each element or None).
nb::tuple compute(nb::handle op, nb::tuple inputs, nb::handle format, nb::handle to, nb::handle how,
                  nb::handle out, nb::handle each_flags, nb::handle where) {
  const bool wants_each = flag_of(each_flags, "each_flags");
  void* const on = stream_in(where);
  const auto what = enumerator_of<operation>(op, "operation");
  const std::optional<format_id> own_format = format_of(format);
  computation c;
  const int operands = static_cast<int>(nb::len(inputs));
  for (int i = 0; i < operands; ++i) {
    const char* const name = operand_names[i];
    c.add(array_of(inputs[static_cast<std::size_t>(i)],
                   {.name = name, .format = own_format, .stream = on}),
          name);
    if (to.is_none() && c.arrays[i].format != c.arrays[0].format) {
      raise_invalid("to: the operands have two formats; say the format of the result");
    }
  }
  const format_id to_format = format_of(to, "to").value_or(c.arrays[0].format);
  const common_shape shape = broadcast(c);
  output result = output_like(inputs[0], c.arrays[0], shape.dims, shape.sizes, to_format, out, on);
  const array& target = c.add(std::move(result.a), "out");
  nb::object each = nb::none();
  if (wants_each) {
    each = nb::module_::import_("numpy").attr("empty")(shape_of(shape.dims, shape.sizes), "u1");
    // Flags bytes are described as E8M0 codes, which are also one byte, so that nothing is copied.
    const argument bytes = {.name = "flags_out", .needs = access::write, .format = format_id::e8m0};
    c.add(array_of(each, bytes), "flags_out");
  }

  auto options = options_of<compute_options>(how);
  const executor with = executor_of(where, target, target.size());
  flags raised = flags::none;
  const auto call = [&](const auto& view) {
    array_operands in = {.a = view(0)};
    if (operands > 1) in.b = view(1);
    if (operands > 2) in.c = view(2);
    flags_view of_each;
    if (wants_each) {
      const matrix_view v = view(operands + 1);
      of_each = {static_cast<flags*>(v.data), v.row_stride, v.col_stride};
    }
    raised = raised | compute_with_flags(what, in, view(operands), options, of_each, with);
  };
  run_slices(shape.dims, shape.sizes, c.operands, operands, c.count, options.random, call,
             {{"each", "flags_out"}});
  return nb::make_tuple(result.object, static_cast<int>(raised), each);
}

}  // namespace

void bind_arithmetic(nb::module_& m) {
  def(m, "compute", &compute,
      "Computes an operation; returns result, flags of any element, and flags of each or None.");
}

}  // namespace samebits::python
