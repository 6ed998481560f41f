// Executors, rules and views of calls.
#include "call.hpp"

#include <atomic>

namespace samebits::python {
namespace {

std::atomic<int> default_threads = -1;  // -1: by the number of elements
constexpr std::int64_t elements_per_call_of_one_thread = 1 << 16;

std::string shape_text(int dims, const std::int64_t* shape) {
  std::string text = "[";
  for (int i = 0; i < dims; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

executor executor_of(nb::handle threads, nb::handle backend, nb::handle stream, const array& on,
                     std::int64_t elements) {
  executor e;
  if (!threads.is_none()) {
    if (!nb::try_cast(threads, e.threads)) raise_type("threads: a 32-bit integer is expected");
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
  std::uintptr_t handle = 0;
  if (!nb::try_cast(stream, handle)) raise_type("stream: an unsigned 64-bit integer is expected");
  return reinterpret_cast<void*>(handle);
}

std::string_view text_of(nb::handle text, const char* name) {
  if (text.is_none()) return {};
  if (!PyUnicode_Check(text.ptr())) raise_type(std::string(name) + ": a string is expected");
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), nullptr);
  if (bytes == nullptr) throw nb::python_error();
  return bytes;
}

random_stream random_of(nb::handle random) {
  if (random.is_none()) return {};
  const auto pitch = nb::cast<std::int64_t>(random[3]);
  return {.seed = nb::cast<std::uint64_t>(random[0]),
          .stream = nb::cast<std::uint64_t>(random[1]),
          .offset = nb::cast<std::uint64_t>(random[2]),
          .pitch = pitch >= 0 ? std::optional<std::uint64_t>(pitch) : std::nullopt,
          .bits = nb::cast<int>(random[4])};
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

output output_like(nb::handle x, const array& in, format_id format, nb::handle out, void* stream) {
  if (out.is_none()) return new_output(x, in, format);
  const argument what = {.name = "out", .needs = access::write, .format = format, .stream = stream};
  output given = {nb::borrow(out), array_of(out, what)};
  check_shape({&given.a, "out"}, in.dims, in.shape);
  if (given.a.library != nullptr) mark_written(out);
  return given;
}

void check_shape(const operand& of, int dims, const std::int64_t* shape) {
  bool equal = of.a->dims == dims;
  for (int i = 0; equal && i < dims; ++i) equal = of.a->shape[i] == shape[i];
  if (equal) return;
  raise_invalid(std::string(of.name) + ": shape " + shape_text(dims, shape) + " is expected; got " +
                shape_text(of.a->dims, of.a->shape));
}

void bind_calls(nb::module_& m) {
  m.def(
      "set_num_threads", [](int threads) { default_threads = threads; }, nb::arg("threads"),
      "Sets the threads of calls without threads=; -1: by the number of elements.");
  m.def(
      "get_num_threads", [] { return default_threads.load(); }, "Returns set_num_threads()'s.");
  m.def("get_mxcsr", &get_mxcsr, "Returns the SSE control register. For tests.");
  m.def("set_mxcsr", &set_mxcsr, nb::arg("value"), "Sets the SSE control register. For tests.");
  m.def(
      "describe",
      [](nb::handle x, const char* name, int format) {
        const array a = array_of(x, {.name = name, .format = format_of(format)});
        return nb::make_tuple(shape_of(a), static_cast<int>(a.format));
      },
      nb::arg("x").none(), nb::arg("name"), nb::arg("format"),
      "Returns shape and format number of an array.");
}

}  // namespace samebits::python
