// Raises the exceptions of samebits.errors.
#include "errors.hpp"

#include "samebits/c/samebits.h"

namespace samebits::python {
namespace {

[[noreturn]] void raise(nb::handle type, const std::string& message) {
  PyErr_SetObject(type.ptr(), nb::str(message.c_str()).ptr());
  throw nb::python_error();
}

nb::object errors() { return nb::module_::import_("samebits.errors"); }

}  // namespace

void raise_status(std::int32_t status) {
  const std::string message = samebits_last_error();
  const nb::object type = errors().attr("for_status")(status);
  if (status == SAMEBITS_CUDA_ERROR) {
    const nb::object error = type(message.c_str(), samebits_last_cuda_error());
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
  }
  raise(type, message);
}

void raise_invalid(const std::string& message) { raise(errors().attr("InvalidArgument"), message); }

void raise_type(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw nb::python_error();
}

void raise_internal(const std::string& message) { raise(errors().attr("InternalError"), message); }

}  // namespace samebits::python
