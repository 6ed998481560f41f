#include "numpy_object.hpp"

#include "errors.hpp"

namespace samebits::python {
namespace {

// PyArray_NewFromDescr of NumPy's C interface. Takes over a reference to `dtype`.
using new_from_descr = PyObject* (*)(PyTypeObject* type, PyObject* dtype, int dims,
                                     const std::intptr_t* shape, const std::intptr_t* strides,
                                     void* data, int flags, PyObject* like);

// Its place in the table of functions: numpy/_core/code_generators/numpy_api.py. NumPy keeps the
// places for all of its version 2.
constexpr int new_from_descr_place = 94;

// The first function returns the version of the C interface: 0x02000000 for all of version 2.
using interface_version = unsigned (*)();

// Set at import. The type lives as long as the interpreter.
PyTypeObject* ndarray_type = nullptr;
new_from_descr new_array = nullptr;

}  // namespace

void register_numpy(nb::handle ndarray, nb::handle functions, nb::handle float64) {
  void** const table = static_cast<void**>(PyCapsule_GetPointer(functions.ptr(), nullptr));
  if (table == nullptr) throw nb::python_error();
  if (reinterpret_cast<interface_version>(table[0])() >> 24 != 2) {
    raise_internal("this NumPy's C interface is not that of version 2");
  }
  ndarray_type = reinterpret_cast<PyTypeObject*>(ndarray.inc_ref().ptr());
  new_array = reinterpret_cast<new_from_descr>(table[new_from_descr_place]);
  const std::int64_t shape[2] = {3, 5};
  const nb::object sample = new_numpy_array(2, shape, float64);
  const numpy_object& s = fields_of(sample);
  const auto address = nb::cast<std::uintptr_t>(sample.attr("__array_interface__")["data"][0]);
  const bool known = reinterpret_cast<std::uintptr_t>(s.data) == address && s.dims == 2 &&
                     s.shape[0] == 3 && s.shape[1] == 5 && s.strides[0] == 40 &&
                     s.strides[1] == 8 && sample.attr("dtype").ptr() == s.dtype;
  if (!known) raise_internal("this version of NumPy lays its arrays out in another way");
}

nb::object new_numpy_array(int dims, const std::int64_t* shape, nb::handle dtype) {
  static_assert(sizeof(std::int64_t) == sizeof(std::intptr_t));
  PyObject* const made =
      new_array(ndarray_type, dtype.inc_ref().ptr(), dims,
                reinterpret_cast<const std::intptr_t*>(shape), nullptr, nullptr, 0, nullptr);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

}  // namespace samebits::python
