// Turns Python arguments into the C structs of a call: executor, rule, random stream, views.
#pragma once

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include "array.hpp"
#include "errors.hpp"
#include "host_guard.hpp"
#include "samebits/c/samebits.h"
#include "slices.hpp"

namespace samebits::python {

/// Returns the executor of a call.
///
/// @param threads  a number, or None for the number of set_num_threads()
/// @param backend  a name or None
/// @param stream  a cudaStream_t as a number; None: torch's current stream for torch tensors, else
///   the default stream
/// @param on  array whose library and device say which stream is current
/// @param elements  number of elements; by default a call on few elements uses one thread
samebits_executor executor_of(nb::handle threads, nb::handle backend, nb::handle stream,
                              const array& on, std::int64_t elements);

/// The stream of a call as a pointer.
void* stream_of(nb::handle stream);

/// Returns the format that a caller named, or -1 for None.
std::int32_t format_of(nb::handle format);

/// Returns the text of a str, valid as long as the str; null for None.
const char* text_of(nb::handle text, const char* name);

/// Rounding, overflow and NaN policy in one number: rounding | overflow << 8 | nan << 16.
struct rule {
  std::int32_t rounding;
  std::int32_t overflow;
  std::int32_t nan_policy;

  explicit rule(int packed)
      : rounding(packed & 255), overflow(packed >> 8 & 255), nan_policy(packed >> 16) {}
};

/// Returns the random stream of (seed, stream, offset, pitch or -1, bits); the default for None.
samebits_random_stream random_of(nb::handle random);

/// Calls on fewer elements keep the GIL: releasing the GIL would take longer than the call.
inline constexpr std::int64_t elements_without_release = 4096;

/// Lets Python's signal handlers run. Returns -1 if one of them raised, such as KeyboardInterrupt.
std::int32_t run_signal_handlers();

/// Lets the library ask run_signal_handlers() during the calls of this thread.
class interruptible {
 public:
  interruptible() : before_(samebits_set_interrupt_check(&run_signal_handlers)) {}
  ~interruptible() { samebits_set_interrupt_check(before_); }
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;

 private:
  samebits_interrupt_function before_;
};

/// Calls the library with IEEE 754 settings of the processor, and raises the error of the call.
/// Releases the GIL for calls on many elements. Signals wait for the end of the call: for calls of
/// which half does harm, such as an optimizer's step.
template <class Call>
void run_to_end(std::int64_t elements, Call&& call) {
  std::int32_t status = SAMEBITS_OK;
  if (elements < elements_without_release) {
    const host_guard guard;
    status = call();
  } else {
    const nb::gil_scoped_release release;
    const host_guard guard;
    status = call();
  }
  check(status);
}

/// run_to_end(), but the exception of a signal handler ends a call on many elements.
template <class Call>
void run(std::int64_t elements, Call&& call) {
  if (elements < elements_without_release) return run_to_end(elements, call);
  std::int32_t status = SAMEBITS_OK;
  {
    const nb::gil_scoped_release release;
    const host_guard guard;
    const interruptible signals;
    status = call();
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  check(status);
}

/// Calls the library without the GIL, for calls that may wait or take long.
template <class Call>
void run(Call&& call) {
  run(elements_without_release, call);
}

/// Returns the view of a whole array as [leading axes, last axis].
samebits_view view_of(const operand& of);

/// Returns the view of array `i` on one matrix of `s`; `offsets` come from slices::for_each().
samebits_view view_of(const slices& s, int i, const array& a, const std::int64_t* offsets);

/// Raises InvalidArgument unless the array has the expected shape [dims]. The message names both
/// shapes.
void check_shape(const operand& of, int dims, const std::int64_t* shape);

// Each function adds the functions of one file to the module.
void bind_calls(nb::module_& m);
void bind_formats(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_convert(nb::module_& m);
void bind_arithmetic(nb::module_& m);
void bind_reductions(nb::module_& m);
void bind_quantize(nb::module_& m);
void bind_tensor_list(nb::module_& m);
void bind_loss_scaler(nb::module_& m);
void bind_ranks(nb::module_& m);
void bind_resident_scaler(nb::module_& m);
void bind_rotary(nb::module_& m);
void bind_row_functions(nb::module_& m);
void bind_matmul(nb::module_& m);
void bind_optimizer(nb::module_& m);
void bind_tensor_places(nb::module_& m);
void bind_backends(nb::module_& m);
void bind_autocast(nb::module_& m);

}  // namespace samebits::python
