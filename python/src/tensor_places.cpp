// Where torch tensors lie and how: what a list of the library was made for, in a form that is quick to
// compare. A list of addresses stays right only while this stays equal.
#include <cstdint>
#include <vector>

#include "call.hpp"
#include "exchange.hpp"

namespace samebits::python {
namespace {

// Finds the exchange table of one tensor after another. Neighbours mostly have the same type.
class table_finder {
 public:
  table_finder() : helper_(nb::module_::import_("samebits.arrays")) {}

  const exchange_table* operator()(nb::handle tensor) {
    PyTypeObject* const type = Py_TYPE(tensor.ptr());
    if (type != type_) {
      type_ = type;
      table_ = exchange_table_of(tensor, helper_);
    }
    return table_;
  }

 private:
  nb::object helper_;
  PyTypeObject* type_ = nullptr;
  const exchange_table* table_ = nullptr;
};

// Whether a tensor stands for the negative of what its memory holds.
bool is_negative(nb::handle tensor, nb::handle is_neg) {
  const nb::object result =
      nb::steal(PyObject_CallMethodObjArgs(tensor.ptr(), is_neg.ptr(), nullptr));
  if (!result.is_valid()) throw nb::python_error();
  return result.ptr() == Py_True;
}

// Addresses and kinds of tensors, in their order. A kind is device, dtype, negative bit, number of
// dimensions, sizes and strides.
struct places {
  std::vector<std::int64_t> addresses, kinds;

  void add(const dl_tensor& t, bool negative) {
    const auto data = reinterpret_cast<std::uintptr_t>(t.data);
    addresses.push_back(static_cast<std::int64_t>(data + t.byte_offset));
    kinds.push_back(std::int64_t{t.device.type} << 32 | t.device.id);
    kinds.push_back(std::int64_t{t.type.lanes} << 16 | t.type.code << 8 | t.type.bits);
    kinds.push_back(std::int64_t{negative} << 32 | t.dims);
    kinds.insert(kinds.end(), t.shape, t.shape + t.dims);
    if (t.strides != nullptr) kinds.insert(kinds.end(), t.strides, t.strides + t.dims);
  }
  void add_none() {
    addresses.push_back(0);
    kinds.push_back(-1);  // no device
  }
};

nb::bytes bytes_of(const std::vector<std::int64_t>& words) {
  return nb::bytes(words.data(), words.size() * sizeof(std::int64_t));
}

// The tensor that an item stands for: itself, or state[key] of (state, key). Invalid: there is none.
nb::object tensor_of(nb::handle item) {
  if (!nb::isinstance<nb::tuple>(item)) return nb::borrow(item);
  PyObject* const tensor =
      PyObject_GetItem(PyTuple_GetItem(item.ptr(), 0), PyTuple_GetItem(item.ptr(), 1));
  if (tensor == nullptr) PyErr_Clear();
  return nb::steal(tensor);
}

nb::object tensor_places(nb::list tensors, bool negative_bits) {
  const nb::object is_neg = nb::steal(PyUnicode_InternFromString("is_neg"));
  table_finder table_of;
  places found;
  found.addresses.reserve(nb::len(tensors));
  found.kinds.reserve(5 * nb::len(tensors));  // of vectors
  for (const nb::handle item : tensors) {
    const nb::object tensor = tensor_of(item);
    if (!tensor.is_valid()) return nb::none();
    if (tensor.is_none()) {
      found.add_none();
      continue;
    }
    const exchange_table* const table = table_of(tensor);
    if (table == nullptr) return nb::none();
    try {
      found.add(describe_tensor(*table, tensor), negative_bits && is_negative(tensor, is_neg));
    } catch (nb::python_error&) {  // a sparse tensor, for example
      return nb::none();
    }
  }
  return nb::make_tuple(bytes_of(found.addresses), bytes_of(found.kinds));
}

}  // namespace

void bind_tensor_places(nb::module_& m) {
  m.def("tensor_places", &tensor_places, nb::arg("tensors"), nb::arg("negative_bits") = false,
        nb::sig("def tensor_places(tensors: list, negative_bits: bool = False) "
                "-> tuple[bytes, bytes] | None"),
        "Returns the addresses (int64) of torch tensors, and their devices, dtypes, sizes, strides "
        "and, if asked for, negative bits, each as bytes. Entries may be None, "
        "or (state, key) for state[key]. Returns None if one is missing or has no memory of its "
        "own.");
}

}  // namespace samebits::python
