// The arrays of one call on rows: the first array, operands beside it, and results.
#pragma once

#include "call.hpp"

namespace samebits::python {

struct call_arrays {
  nb::handle like;                  ///< the first array
  nb::object where;                 ///< (threads, backend, stream)
  std::optional<format_id> format;  ///< of the arrays; none: each array's dtype says it
  void* stream;
  viewed first;

  call_arrays(nb::handle x, const char* name, nb::handle executed,
              nb::handle named_format = nb::none())
      : like(x),
        where(nb::borrow(executed)),
        format(format_of(named_format)),
        stream(stream_in(executed)),
        first(x, {.name = name, .format = format, .stream = stream}) {}

  /// The arrays of a call that takes no threads, backend or stream from its caller.
  call_arrays(nb::handle x, const char* name)
      : call_arrays(x, name, nb::make_tuple(nb::none(), nb::none(), nb::none())) {}

  /// An operand of any shape; no view for None.
  [[nodiscard]] viewed operand(nb::handle x, const char* name,
                               std::optional<format_id> of = {}) const {
    return x.is_none() ? viewed{} : viewed(x, {.name = name, .format = of, .stream = stream});
  }
  /// An operand in the shape of the first array; no view for None.
  [[nodiscard]] viewed beside(nb::handle x, const char* name) const {
    viewed v = operand(x, name, format);
    if (!x.is_none()) check_shape({&v.a, name}, first.a.dims, first.a.shape);
    return v;
  }
  /// A result in the shape and format of the first array.
  [[nodiscard]] output result(nb::handle given = nb::none()) const {
    return output_like(like, first.a, first.a.format, given, stream);
  }
  /// The shape of the first array with a last axis of 1, in `sizes`; returns its number of axes. fp32
  /// arrays of it have one number for each row.
  int column_shape(std::int64_t (&sizes)[max_dims]) const {
    const int dims = first.a.dims;
    for (int i = 0; i < dims; ++i) sizes[i] = i + 1 < dims ? first.a.shape[i] : 1;
    return dims;
  }
  [[nodiscard]] output new_column() const {
    std::int64_t sizes[max_dims];
    const int dims = column_shape(sizes);
    return new_output(like, first.a, dims, sizes, format_id::fp32);
  }
  [[nodiscard]] matrix_view column(const output& o) const {
    return {o.a.data, o.a.format, first.view.rows, 1, 1, 1, o.a.memory};
  }

  /// Calls call(executor) for `elements` elements.
  template <class Call>
  void run(std::int64_t elements, const Call& call) const {
    const executor on = executor_of(where, first.a, elements);
    python::run(elements, [&] { call(on); });
  }
  template <class Call>
  void run(const Call& call) const {
    run(first.a.size(), call);
  }
  /// Calls call(view of a result, executor). Returns the result.
  template <class Call>
  [[nodiscard]] nb::object compute(const output& out, const Call& call) const {
    const matrix_view view = view_of({&out.a, "out"});
    run([&](const executor& on) { call(view, on); });
    return out.object;
  }
  template <class Call>
  [[nodiscard]] nb::object compute(const Call& call) const {
    return compute(result(), call);
  }
};

/// The view of a result, which messages call `name`.
inline matrix_view view_of(const output& o, const char* name) { return view_of({&o.a, name}); }

}  // namespace samebits::python
