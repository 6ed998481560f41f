// Array arithmetic: operands broadcast as in NumPy.
#include "c_call.hpp"

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
        raise_invalid(std::string(c.operands[i].name) +
                      ": its shape does not broadcast with the other operands'");
      }
      s.sizes[axis] = a.shape[own];
    }
  }
  return s;
}

nb::tuple tuple_of(const common_shape& s) {
  nb::list sizes;
  for (int i = 0; i < s.dims; ++i) sizes.append(s.sizes[i]);
  return nb::tuple(sizes);
}

// Calls the library once, on one matrix of the slices.
std::int32_t compute_slice(int op, const computation& c, int operands, bool each, const slices& s,
                           const std::int64_t* offsets, const samebits_compute_options& options,
                           bool with_flags, std::uint32_t& raised, const samebits_executor& where) {
  samebits_view views[4];
  for (int i = 0; i <= operands; ++i) views[i] = c::view_of(s, i, c.arrays[i], offsets);
  const samebits_view* const b = operands > 1 ? &views[1] : nullptr;
  const samebits_view* const third = operands > 2 ? &views[2] : nullptr;
  const samebits_view& out = views[operands];
  if (!with_flags) return samebits_compute(op, views, b, third, &out, &options, &where);
  samebits_flags_view flags = {};
  if (each) {
    const int last = operands + 1;
    flags = {reinterpret_cast<std::uint8_t*>(c.arrays[last].data) + offsets[last],
             s.row_strides[last], s.col_strides[last]};
  }
  std::uint32_t seen = 0;
  const std::int32_t status = samebits_compute_with_flags(op, views, b, third, &out, &options,
                                                          each ? &flags : nullptr, &seen, &where);
  raised |= seen;
  return status;
}

// Returns (out, flags that any element raised).
nb::tuple compute(int op, nb::tuple inputs, int format, int to, int packed_rule, nb::handle random,
                  nb::handle out, nb::handle each, bool with_flags, nb::handle threads,
                  nb::handle backend, nb::handle stream) {
  void* const cuda_stream = stream_of(stream);
  computation c;
  const int operands = static_cast<int>(nb::len(inputs));
  for (int i = 0; i < operands; ++i) {
    const char* const name = operand_names[i];
    c.add(array_of(inputs[static_cast<std::size_t>(i)],
                   {.name = name, .format = format_of(format), .stream = cuda_stream}),
          name);
    if (to < 0 && c.arrays[i].format != c.arrays[0].format) {
      raise_invalid("to: the operands have two formats; say the format of the result");
    }
  }
  if (to < 0) to = static_cast<int>(c.arrays[0].format);
  const common_shape shape = broadcast(c);
  nb::object result = out.is_none()
                          ? empty_like(inputs[0], tuple_of(shape), static_cast<format_id>(to))
                          : nb::borrow(out);
  const argument written = {
      .name = "out", .needs = access::write, .format = format_of(to), .stream = cuda_stream};
  const array& target = c.add(array_of(result, written), "out");
  check_shape({&target, "out"}, shape.dims, shape.sizes);
  if (!out.is_none() && target.library != nullptr) mark_written(out);
  if (!each.is_none()) {
    // Flags bytes are described as E8M0 codes, which are also one byte, so that nothing is copied.
    const argument bytes = {.name = "flags_out", .needs = access::write, .format = format_id::e8m0};
    const array& flags = c.add(array_of(each, bytes), "flags_out");
    check_shape({&flags, "flags_out"}, shape.dims, shape.sizes);
  }
  const slices s = slices_of(shape.dims, shape.sizes, c.operands, c.count);
  if (s.loops > 0) check_overlap(c.operands[operands], c.operands, operands);

  const c::rule r(packed_rule);
  samebits_compute_options options = SAMEBITS_COMPUTE_OPTIONS_INIT;
  options.rounding = r.rounding;
  options.overflow = r.overflow;
  options.nan_policy = r.nan_policy;
  options.random = c::random_of(random);
  const std::uint64_t first = options.random.offset;
  const samebits_executor where = c::executor_of(threads, backend, stream, target, target.size());
  std::uint32_t raised = 0;
  c::run(target.size(), [&] {
    std::int32_t status = SAMEBITS_OK;
    s.for_each([&](const std::int64_t* offsets, std::int64_t flat) {
      if (status != SAMEBITS_OK) return;
      options.random.offset = first + static_cast<std::uint64_t>(flat);
      status = compute_slice(op, c, operands, !each.is_none(), s, offsets, options, with_flags,
                             raised, where);
    });
    return status;
  });
  return nb::make_tuple(result, raised);
}

}  // namespace

void bind_arithmetic(nb::module_& m) {
  m.def("compute", &compute, nb::arg("operation"), nb::arg("operands"), nb::arg("format"),
        nb::arg("to"), nb::arg("rule"), nb::arg("random").none(), nb::arg("out").none(),
        nb::arg("flags_out").none(), nb::arg("with_flags"), nb::arg("threads").none(),
        nb::arg("backend").none(), nb::arg("stream").none(),
        "Computes an operation; returns the result and the flags that any element raised.");
}

}  // namespace samebits::python
