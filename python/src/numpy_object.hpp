// NumPy's array objects: their fields, and new arrays, without NumPy's headers.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace samebits::python {

namespace nb = nanobind;

/// The first fields of an array object: PyArrayObject_fields of NumPy's ndarraytypes.h, whose
/// inline functions read them in every extension built for NumPy 2.
struct numpy_object {
  PyObject_HEAD char* data;
  int dims;
  std::intptr_t* shape;
  std::intptr_t* strides;  ///< in bytes
  PyObject* base;
  PyObject* dtype;
  int flags;
};

inline const numpy_object& fields_of(nb::handle array) {
  return *reinterpret_cast<const numpy_object*>(array.ptr());
}

/// Sets up new_numpy_array(), and checks that array objects are laid out as numpy_object.
///
/// @param ndarray  the type numpy.ndarray
/// @param functions  the capsule `_ARRAY_API`: NumPy's table of C functions
/// @param float64  the dtype
/// @throws samebits.InternalError for a NumPy with another layout
void register_numpy(nb::handle ndarray, nb::handle functions, nb::handle float64);

/// Returns a new C-contiguous array. register_numpy() must have been called.
nb::object new_numpy_array(int dims, const std::int64_t* shape, nb::handle dtype);

}  // namespace samebits::python
