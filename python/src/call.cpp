// Executors, rules and views of calls.
#include "call.hpp"

#include <atomic>
#include <span>

#include "samebits/core/cat.hpp"

namespace samebits::python {
namespace {

std::atomic<int> default_threads = -1;  // -1: by the number of elements
constexpr std::int64_t elements_per_call_of_one_thread = 1 << 16;

}  // namespace

executor executor_of(nb::handle threads, nb::handle backend, nb::handle stream, const array& on,
                     std::int64_t elements) {
  executor e;
  if (!threads.is_none()) {
    e.threads = integer_of<std::int32_t>(threads, "threads", 0);
  } else {
    const int chosen = default_threads.load(std::memory_order_relaxed);
    e.threads = chosen >= 0 ? chosen : elements > elements_per_call_of_one_thread ? 0 : 1;
  }
  e.backend = text_of(backend, "backend");
  const bool on_torch = on.library != nullptr && on.memory == memory_space::device;
  e.stream =
      stream.is_none() && on_torch ? current_stream(*on.library, on.device) : stream_of(stream);
  return e;
}

std::int32_t run_signal_handlers() {
  const nb::gil_scoped_acquire acquire;
  return PyErr_CheckSignals();
}

void* stream_of(nb::handle stream) {
  if (stream.is_none()) return nullptr;
  std::uintptr_t number = 0;
  if (PyLong_Check(stream.ptr())) {
    if (!nb::try_cast(stream, number)) {
      raise_invalid("stream: a cudaStream_t is expected; got " +
                    std::string(nb::repr(stream).c_str()));
    }
    return reinterpret_cast<void*>(number);
  }
  nb::object protocol = nb::getattr(stream, "__cuda_stream__", nb::none());
  if (PyCallable_Check(protocol.ptr()) != 0 && !PyType_Check(stream.ptr())) protocol = protocol();
  if (!PyTuple_Check(protocol.ptr()) || !nb::try_cast(item(protocol, 1), number)) {
    raise_type(
        "stream: an integer (cudaStream_t) or an object with __cuda_stream__ is expected; got a " +
        nb::cast<std::string>(nb::handle(stream.type()).attr("__name__")));
  }
  return reinterpret_cast<void*>(number);
}

void check_seed(nb::handle seed) {
  if (seed.is_none()) nb::module_::import_("samebits.rules").attr("check_seed")(seed);
}

tile_shape tile_of(nb::handle tile, const char* name) {
  if (!PyTuple_Check(tile.ptr()) || nb::len(tile) != 2) {
    raise_type(std::string(name) + ": rows and columns are expected, such as (1, 128); got " +
               nb::repr(tile).c_str());
  }
  return {integer_of<std::int64_t>(item(tile, 0), name),
          integer_of<std::int64_t>(item(tile, 1), name)};
}

matrix_view view_of(const operand& of) {
  const matrix m = matrix_of(of);
  return {of.a->data, of.a->format, m.rows, m.cols, m.row_stride, m.col_stride, of.a->memory};
}

matrix_view view_of(const slices& s, int i, const array& a, const std::int64_t* offsets) {
  return {a.data + offsets[i] * a.bytes,
          a.format,
          s.rows,
          s.cols,
          s.row_strides[i],
          s.col_strides[i],
          a.memory};
}

output output_like(nb::handle x, const array& in, int dims, const std::int64_t* shape,
                   format_id format, nb::handle out, void* stream) {
  if (out.is_none()) return new_output(x, in, dims, shape, format);
  const argument what = {.name = "out", .needs = access::write, .format = format, .stream = stream};
  output given = {nb::borrow(out), array_of(out, what)};
  check_shape({&given.a, "out"}, dims, shape);
  if (given.a.library != nullptr) mark_written(out);
  return given;
}

void check_shape(const operand& of, int dims, const std::int64_t* shape) {
  bool equal = of.a->dims == dims;
  for (int i = 0; equal && i < dims; ++i) equal = of.a->shape[i] == shape[i];
  if (equal) return;
  const std::span expected(shape, static_cast<std::size_t>(dims));
  const std::span given(of.a->shape, static_cast<std::size_t>(of.a->dims));
  raise_invalid(detail::cat(of.name, ": shape ", expected, " is expected; got ", given));
}

void bind_calls(nb::module_& m) {
  m.def(
      "set_num_threads",
      [](nb::handle threads) {
        default_threads = threads.is_none() ? -1 : integer_of<std::int32_t>(threads, "threads", 0);
      },
      nb::arg("threads").none(), "Sets the threads of calls without threads=.");
  m.def(
      "get_num_threads", [] { return default_threads.load(); }, "Returns set_num_threads()'s.");
  m.def("get_mxcsr", &get_mxcsr, "Returns the SSE control register. For tests.");
  def(m, "set_mxcsr", &set_mxcsr, "Sets the SSE control register. For tests.");
  m.def(
      "describe",
      [](nb::handle x, const char* name, nb::handle format) {
        const array a = array_of(x, {.name = name, .format = format_of(format)});
        return nb::make_tuple(shape_of(a), samebits::name(a.format));
      },
      nb::arg("x").none(), nb::arg("name"), nb::arg("format") = nb::none(),
      "Returns shape and format of an array.");
}

}  // namespace samebits::python
