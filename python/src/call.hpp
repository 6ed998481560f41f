// What every call of the library needs: executor, rule, random stream, views, status.
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
/// @param threads  a number or None: the number of set_num_threads()
/// @param backend  a name or None
/// @param stream  a cudaStream_t as a number, or None
/// @param elements  of the call: few elements take one thread
samebits_executor executor_of(nb::handle threads, nb::handle backend, nb::handle stream,
                              std::int64_t elements);

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

/// Arrays with fewer elements keep the GIL: releasing it would take longer than their call.
inline constexpr std::int64_t elements_without_release = 4096;

/// Makes a call of the library in IEEE 754 arithmetic, without the GIL, and raises its error.
template <class Call>
void run(std::int64_t elements, Call&& call) {
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

/// Makes a call that may wait or take long.
template <class Call>
void run(Call&& call) {
  run(elements_without_release, call);
}

/// Returns the view of a whole array as [leading axes, last axis].
samebits_view view_of(const operand& of);

/// Returns the view of one matrix of slices.
samebits_view view_of(const slices& s, int i, const array& a, const std::int64_t* offsets);

/// Refuses an array whose shape is not the expected one, naming both.
void check_shape(const operand& of, int dims, const std::int64_t* shape);

// The functions of each file, added to the module.
void bind_calls(nb::module_& m);
void bind_formats(nb::module_& m);
void bind_convert(nb::module_& m);
void bind_arithmetic(nb::module_& m);
void bind_reductions(nb::module_& m);
void bind_quantize(nb::module_& m);
void bind_tensor_list(nb::module_& m);
void bind_loss_scaler(nb::module_& m);
void bind_matmul(nb::module_& m);
void bind_backends(nb::module_& m);
void bind_autocast(nb::module_& m);

}  // namespace samebits::python
