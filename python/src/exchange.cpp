// Calls the functions of an exchange table, and remembers the tables of the types seen.
#include "exchange.hpp"

#include <mutex>
#include <string>

#include "errors.hpp"

namespace samebits::python {

// DLPackExchangeAPI (dlpack.h 1.3). Functions return 0, or -1 with a Python error set.
struct exchange_table {
  std::uint32_t major;
  std::uint32_t minor;
  const exchange_table* previous;  // of an older major version, or null
  int (*allocate)(const dl_tensor* like, dl_managed_versioned** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*from_object)(void* object, dl_managed_versioned** out);
  int (*to_object)(dl_managed_versioned* tensor, void** object);
  int (*describe)(void* object, dl_tensor* out);  // may be null
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** stream);
};

namespace {

// A type and its table; null if it has none. The types live as long as the interpreter.
struct known_type {
  PyObject* type = nullptr;
  const exchange_table* table = nullptr;
};
constexpr int max_known =
    32;  // torch.Tensor, Parameter and few others; further types are looked up
known_type known[max_known];
int known_count = 0;
std::mutex known_mutex;

const exchange_table* look_up(nb::handle type, nb::handle helper) {
  const nb::object capsule = helper.attr("exchange_capsule")(type);
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return nullptr;
  const auto* table = static_cast<const exchange_table*>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (table != nullptr && table->major > 1) table = table->previous;
  if (table == nullptr || table->major != 1 || table->describe == nullptr) return nullptr;
  return table;
}

}  // namespace

const exchange_table* exchange_table_of(nb::handle object, nb::handle helper) {
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  {
    const std::lock_guard lock(known_mutex);
    for (int i = 0; i < known_count; ++i) {
      if (known[i].type == type) return known[i].table;
    }
  }
  const exchange_table* const table =
      look_up(type, helper);  // runs Python code: not under the mutex
  const std::lock_guard lock(known_mutex);
  if (known_count < max_known) known[known_count++] = {nb::borrow(type).release().ptr(), table};
  return table;
}

dl_tensor describe_tensor(const exchange_table& table, nb::handle object) {
  dl_tensor t;
  if (table.describe(object.ptr(), &t) != 0) throw nb::python_error();
  return t;
}

void* current_stream(const exchange_table& table, dl_device_id device) {
  void* stream = nullptr;
  if (table.current_stream(device.type, device.id, &stream) != 0) throw nb::python_error();
  return stream;
}

nb::object new_tensor(const exchange_table& table, int dims, const std::int64_t* shape,
                      dl_data_type type, dl_device_id device) {
  dl_tensor like = {};
  like.device = device;
  like.dims = dims;
  like.type = type;
  like.shape = const_cast<std::int64_t*>(shape);
  std::string message = "no memory";
  const auto set_error = [](void* context, const char*, const char* text) {
    *static_cast<std::string*>(context) = text;
  };
  dl_managed_versioned* made = nullptr;
  if (table.allocate(&like, &made, &message, set_error) != 0) {
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    const bool full = message.find("out of memory") != std::string::npos;
    const nb::object error = nb::module_::import_("torch").attr("OutOfMemoryError");
    PyErr_SetString(full ? error.ptr() : PyExc_RuntimeError, ("out: " + message).c_str());
    throw nb::python_error();
  }
  void* object = nullptr;
  if (table.to_object(made, &object) != 0) throw nb::python_error();
  return nb::steal(static_cast<PyObject*>(object));
}

}  // namespace samebits::python
