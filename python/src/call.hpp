// Turns Python arguments into those of a call of the library: executor, rule, random stream, views.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "arguments.hpp"
#include "array.hpp"
#include "errors.hpp"
#include "host_guard.hpp"
#include "options.hpp"
#include "samebits/backend.hpp"
#include "samebits/interruption.hpp"
#include "samebits/view.hpp"
#include "slices.hpp"

namespace samebits::python {

/// Returns the executor of a call.
///
/// @param threads  a number, or None for the number of set_num_threads()
/// @param backend  a name or None
/// @param stream  a cudaStream_t as a number or an object with __cuda_stream__; None: torch's current
///   stream for torch tensors, else the default stream
/// @param on  array whose library and device say which stream is current
/// @param elements  number of elements; by default a call on few elements uses one thread
executor executor_of(nb::handle threads, nb::handle backend, nb::handle stream, const array& on,
                     std::int64_t elements);
/// Returns the executor of `where`, the tuple (threads, backend, stream).
inline executor executor_of(nb::handle where, const array& on, std::int64_t elements) {
  return executor_of(item(where, 0), item(where, 1), item(where, 2), on, elements);
}

/// Returns a stream as a pointer; null for None.
void* stream_of(nb::handle stream);
/// Returns the stream of (threads, backend, stream).
inline void* stream_in(nb::handle where) { return stream_of(item(where, 2)); }

/// Calls on fewer elements keep the GIL: releasing the GIL would take longer than the call.
inline constexpr std::int64_t elements_without_release = 4096;

/// The pointer of an address that Python code passes; the Python code keeps the owner of the memory.
template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

/// Lets Python's signal handlers run. Returns -1 if one of them raised, such as KeyboardInterrupt.
std::int32_t run_signal_handlers();

/// Lets the library ask run_signal_handlers() during the calls of this thread.
class interruptible {
 public:
  interruptible() : before_(set_interrupt_check(&run_signal_handlers)) {}
  ~interruptible() { set_interrupt_check(before_); }
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;

 private:
  interrupt_check before_;
};

/// Calls the library with IEEE 754 settings of the processor, and raises its exception, in whose
/// message the arguments have their Python names. Releases the GIL for calls on many elements.
/// Signals wait for the end of the call: for calls of which half does harm, such as an optimizer's
/// step.
template <class Call>
void run_to_end(std::int64_t elements, const Call& call, argument_names names = {}) {
  try {
    if (elements < elements_without_release) {
      const host_guard guard;
      call();
    } else {
      const nb::gil_scoped_release release;
      const host_guard guard;
      call();
    }
  } catch (...) {  // not beyond this module: nanobind may lie in another one
    raise_current(names);
  }
}

/// run_to_end(), but the exception of a signal handler ends a call on many elements.
template <class Call>
void run(std::int64_t elements, const Call& call, argument_names names = {}) {
  if (elements < elements_without_release) return run_to_end(elements, call, names);
  run_to_end(
      elements,
      [&] {
        const interruptible signals;
        call();
      },
      names);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

/// Calls the library without the GIL, for calls that may wait or take long.
template <class Call>
void run(const Call& call, argument_names names = {}) {
  run(elements_without_release, call, names);
}

/// Returns the view of a whole array as [leading axes, last axis].
matrix_view view_of(const operand& of);

/// Returns the view of array `i` on one matrix of `s`; `offsets` come from slices::for_each().
matrix_view view_of(const slices& s, int i, const array& a, const std::int64_t* offsets);

/// Calls call(view) for each matrix of the operands' common shape [dims]; view(i) is the view of
/// operand i. The first `inputs` operands are read, the next one is the result. `random.offset` counts
/// elements in C order.
template <class Call>
void run_slices(int dims, const std::int64_t* shape, const operand* operands, int inputs, int count,
                random_stream& random, const Call& call, argument_names names = {}) {
  const slices s = slices_of(dims, shape, operands, count);
  const operand& out = operands[inputs];
  if (s.loops > 0) check_overlap(out, operands, inputs);
  const std::uint64_t first = random.offset;
  const auto slice = [&](const std::int64_t* offsets, std::int64_t flat) {
    random.offset = first + static_cast<std::uint64_t>(flat);
    call([&](int i) { return view_of(s, i, *operands[i].a, offsets); });
  };
  run(
      out.a->size(), [&] { s.for_each(slice); }, names);
}

/// An array and its view; by default a view without data.
struct viewed {
  array a;
  matrix_view view = {};

  viewed() = default;
  viewed(nb::handle x, const argument& what)
      : a(array_of(x, what)), view(view_of({&a, what.name})) {}
};

/// Returns the result of a call: `out`, checked and marked as written, or for None a new array.
///
/// @param in  array_of(x); a new array has the library and device of x
/// @param shape  [dims]; by default that of x
output output_like(nb::handle x, const array& in, int dims, const std::int64_t* shape,
                   format_id format, nb::handle out, void* stream);
inline output output_like(nb::handle x, const array& in, format_id format, nb::handle out,
                          void* stream = nullptr) {
  return output_like(x, in, in.dims, in.shape, format, out, stream);
}

/// Raises InvalidArgument unless the array has the expected shape [dims]. The message names both
/// shapes.
void check_shape(const operand& of, int dims, const std::int64_t* shape);

/// Returns the numbers in a bytes object of Python.
template <class T>
std::vector<T> numbers_of(const nb::bytes& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.c_str(), numbers.size() * sizeof(T));
  return numbers;
}

/// Adds a function of positional arguments, each of which may be None. Functions of this module are
/// called by the package alone, which knows the arguments' order.
template <class Result, class... Arguments>
void def(nb::module_& m, const char* name, Result (*function)(Arguments...), const char* doc) {
  const auto accepting = [](auto) { return nb::arg().none(); };
  m.def(name, function, accepting(std::add_pointer_t<Arguments>())..., doc);
}

/// NAME of each function bind_NAME(), which adds the functions of one file to the module, in the
/// order of the calls.
// clang-format off
#define SAMEBITS_PYTHON_FILES(file)                                                        \
  file(arguments) file(arrays) file(calls) file(formats) file(convert) file(arithmetic)    \
  file(functions) file(reductions) file(quantize) file(tensor_list) file(loss_scaler)      \
  file(ranks) file(resident_scaler) file(rotary) file(row_functions)                       \
  file(axis_reductions) file(training_functions) file(attention) file(matmul)              \
  file(codebook) file(operators) file(optimizer) file(tensor_places) file(recorded_tensors) file(backends) \
  file(autocast) file(testing)
// clang-format on
#define SAMEBITS_PYTHON_DECLARE(name) void bind_##name(nb::module_& m);
SAMEBITS_PYTHON_FILES(SAMEBITS_PYTHON_DECLARE)

}  // namespace samebits::python
