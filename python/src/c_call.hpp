// Calls of the C functions, for the files that are not written over the C++ API. Each function does
// what the function of the same name in call.hpp does.
#pragma once

#include <cstdint>

#include "call.hpp"
#include "samebits/c/samebits.h"

namespace samebits::python::c {

/// Raises the exception of a status unless it is success. The GIL must be held.
inline void check(std::int32_t status) {
  if (status == SAMEBITS_OK) return;
  const std::string message = samebits_last_error();
  const nb::object type = nb::module_::import_("samebits.errors").attr("for_status")(status);
  const nb::object error = status == SAMEBITS_CUDA_ERROR
                               ? type(message.c_str(), samebits_last_cuda_error())
                               : type(message.c_str());
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

inline samebits_executor executor_of(nb::handle threads, nb::handle backend, nb::handle stream,
                                     const array& on, std::int64_t elements) {
  const executor e = python::executor_of(threads, backend, stream, on, elements);
  samebits_executor c = SAMEBITS_EXECUTOR_INIT;
  c.backend = e.backend.data();  // ends with 0, or is null
  c.threads = e.threads;
  c.stream = e.stream;
  return c;
}

struct rule {
  std::int32_t rounding;
  std::int32_t overflow;
  std::int32_t nan_policy;

  explicit rule(int packed)
      : rounding(packed & 255), overflow(packed >> 8 & 255), nan_policy(packed >> 16) {}
};

inline samebits_random_stream random_of(nb::handle random) {
  const random_stream r = python::random_of(random);
  samebits_random_stream c = SAMEBITS_RANDOM_STREAM_INIT;
  c.seed = r.seed;
  c.stream = r.stream;
  c.offset = r.offset;
  c.has_pitch = r.pitch ? 1 : 0;
  c.pitch = r.pitch.value_or(0);
  c.bits = r.bits;
  return c;
}

inline samebits_view view_of(const matrix_view& v) {
  return {v.data,
          v.rows,
          v.cols,
          v.row_stride,
          v.col_stride,
          static_cast<std::int32_t>(v.format),
          static_cast<std::int32_t>(v.space)};
}
inline samebits_view view_of(const operand& of) { return view_of(python::view_of(of)); }
inline samebits_view view_of(const slices& s, int i, const array& a, const std::int64_t* offsets) {
  return view_of(python::view_of(s, i, a, offsets));
}

template <class Call>
void run_to_end(std::int64_t elements, Call&& call) {
  std::int32_t status = SAMEBITS_OK;
  python::run_to_end(elements, [&] { status = call(); });
  check(status);
}

template <class Call>
void run(std::int64_t elements, Call&& call) {
  std::int32_t status = SAMEBITS_OK;
  python::run(elements, [&] { status = call(); });
  check(status);
}

template <class Call>
void run(Call&& call) {
  run(elements_without_release, call);
}

}  // namespace samebits::python::c
