// Arrays that Python passes: reads NumPy's array structure or a DLPack capsule.
#include "array.hpp"

#include "call.hpp"
#include "dlpack.hpp"
#include "errors.hpp"
#include "numpy_object.hpp"

namespace samebits::python {
namespace {

constexpr int flag_writable = 0x400;

// A dtype and the format of its elements. Unsigned integers have none: they hold codes of any format
// of their width.
struct dtype_entry {
  PyObject* dtype = nullptr;
  std::optional<format_id> format;
  std::int64_t bytes = 0;
};

// Filled by samebits.formats at import and never changed afterwards. The objects live as long as
// the interpreter.
struct dtype_table {
  dtype_entry rows[32];
  int count = 0;
  PyObject* ndarray = nullptr;      // the type numpy.ndarray
  PyObject* dtype_of[32] = {};      // by format: the dtype of results
  PyObject* helper = nullptr;       // the module samebits.arrays
  PyObject* formats = nullptr;      // samebits.formats.INDEX: the number of each name
  PyObject* is_neg_text = nullptr;  // the interned name of an attribute
};
dtype_table table;

const dtype_entry* find_dtype(PyObject* dtype) {
  for (int i = 0; i < table.count; ++i) {
    if (table.rows[i].dtype == dtype) return &table.rows[i];
  }
  for (int i = 0; i < table.count; ++i) {  // an unpickled dtype is equal, but another object
    const int equal = PyObject_RichCompareBool(table.rows[i].dtype, dtype, Py_EQ);
    if (equal > 0) return &table.rows[i];
    if (equal < 0) PyErr_Clear();
  }
  return nullptr;
}

// Raises the error of samebits.arrays that names the argument, what it is, and the remedy.
[[noreturn]] void refuse(const char* why, nb::handle object, const argument& what) {
  nb::handle(table.helper)
      .attr("refuse")(why, object, what.name, what.format ? static_cast<int>(*what.format) : -1);
  raise_internal("samebits.arrays.refuse returned");
}

// The format of the elements: the dtype's own format, or the format that the caller named.
format_id format_for(nb::handle object, const dtype_entry& row, const argument& what) {
  if (!what.format) {
    if (!row.format) refuse("codes", object, what);
    return *row.format;
  }
  const bool own = row.format == what.format;
  const bool codes = !row.format && row.bytes == storage_bytes(*what.format);
  const bool tf32 = row.format == format_id::fp32 && what.format == format_id::tf32;
  if (!own && !codes && !tf32) refuse("format", object, what);
  return *what.format;
}

// Reads address, shape and strides of a NumPy array into `a`. a.bytes must be set.
void read_layout(nb::handle object, const argument& what, array& a) {
  const numpy_object& s = fields_of(object);
  a.owner = nb::borrow(object);
  a.memory = memory_space::host;
  a.writable = (s.flags & flag_writable) != 0;
  if (what.needs == access::write && !a.writable) refuse("read-only", object, what);
  a.data = s.data;
  a.dims = s.dims;
  for (int i = 0; i < s.dims; ++i) {
    a.shape[i] = s.shape[i];
    if (s.strides[i] % a.bytes != 0 && s.shape[i] > 1) refuse("strides", object, what);
    a.strides[i] = s.strides[i] / a.bytes;
  }
}

array numpy_array(nb::handle object, const argument& what) {
  const dtype_entry* row = find_dtype(fields_of(object).dtype);
  if (row == nullptr) refuse("dtype", object, what);
  array a;
  a.format = format_for(object, *row, what);
  a.bytes = row->bytes;
  read_layout(object, what, a);
  return a;
}

// Formats with a DLPack element type, and the code of this type.
constexpr struct {
  format_id format;
  std::uint8_t code;
} dlpack_types[] = {
    {format_id::fp64, dl_code::real},         {format_id::fp32, dl_code::real},
    {format_id::tf32, dl_code::real},         {format_id::fp16, dl_code::real},
    {format_id::bf16, dl_code::bfloat},       {format_id::e4m3, dl_code::e4m3fn},
    {format_id::e4m3fnuz, dl_code::e4m3fnuz}, {format_id::e5m2, dl_code::e5m2},
    {format_id::e5m2fnuz, dl_code::e5m2fnuz}, {format_id::e8m0, dl_code::e8m0fnu},
};

// The DLPack element type of new tensors: unsigned integers for formats that torch lacks.
dl_data_type type_of(format_id format) {
  const auto bits = static_cast<std::uint8_t>(8 * storage_bytes(format));
  for (const auto& row : dlpack_types) {
    if (row.format == format) return {row.code, bits, 1};
  }
  return {dl_code::unsigned_integer, bits, 1};
}

// The entry of a DLPack element type, for format_for(): a format, or unsigned integers.
dtype_entry entry_of(const dl_data_type& type) {
  dtype_entry entry = {nullptr, std::nullopt, type.bits / 8};
  if (type.lanes != 1) return entry;
  for (const auto& row : dlpack_types) {
    if (row.code != type.code || 8 * storage_bytes(row.format) != type.bits) continue;
    entry.format = row.format;
    break;
  }
  return entry;
}

// Describes a tensor of DLPack. a.owner is not set.
array array_of_dlpack(nb::handle object, const argument& what, const dl_tensor& t, bool read_only) {
  dtype_entry row = entry_of(t.type);
  if (what.integers) {
    const bool fits = t.type.code == dl_code::integer && t.type.bits == 64 && t.type.lanes == 1;
    row = {nullptr, fits ? std::optional(format_id::fp64) : std::nullopt, 8};
  }
  const bool codes = t.type.code == dl_code::unsigned_integer && t.type.lanes == 1;
  if (!row.format && !codes) refuse("dtype", object, what);
  array a;
  a.format = format_for(object, row, what);
  a.bytes = row.bytes;
  if (t.device.type == dl_device::cpu || t.device.type == dl_device::cuda_host) {
    a.memory = memory_space::host;
  } else if (t.device.type == dl_device::cuda) {
    a.memory = memory_space::device;
  } else {
    refuse("device", object, what);
  }
  a.writable = !read_only;
  if (what.needs == access::write && !a.writable) refuse("read-only", object, what);
  if (t.dims > max_dims) refuse("dims", object, what);
  a.data = static_cast<char*>(t.data) + t.byte_offset;
  a.dims = t.dims;
  std::int64_t dense = 1;
  for (int i = t.dims - 1; i >= 0; --i) {
    a.shape[i] = t.shape[i];
    a.strides[i] = t.strides != nullptr ? t.strides[i] : dense;
    dense *= t.shape[i];
  }
  if (t.data == nullptr && a.size() > 0) refuse("no data", object, what);
  return a;
}

array dlpack_array(nb::handle object, const argument& what) {
  dlpack_tensor imported = import_dlpack(object, what.stream, table.helper, what.name);
  array a = array_of_dlpack(object, what, *imported.tensor, imported.read_only);
  a.owner = std::move(imported.capsule);
  return a;
}

// Describes a torch tensor. Raises the error of samebits.arrays if torch cannot describe it.
dl_tensor describe_torch(nb::handle object, const exchange_table& library, const argument& what) {
  try {
    return describe_tensor(library, object);
  } catch (nb::python_error&) {
    nb::handle(table.helper).attr("check_torch")(object, what.name);
    throw;
  }
}

array torch_array(nb::handle object, const exchange_table& library, const argument& what) {
  if (object.attr(nb::handle(table.is_neg_text))().ptr() == Py_True) {
    nb::handle(table.helper).attr("check_torch")(object, what.name);
  }
  const dl_tensor t = describe_torch(object, library, what);
  array a = array_of_dlpack(object, what, t, false);
  a.library = &library;
  a.device = t.device;
  return a;
}

bool is_numpy(nb::handle object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == table.ndarray;
}

// Makes a C-contiguous array of the library and device of `like`.
//
// @param library, device  of a torch tensor; else null
nb::object new_array_like(nb::handle like, const exchange_table* library, dl_device_id device,
                          int dims, const std::int64_t* shape, format_id format) {
  if (library != nullptr) return new_tensor(*library, dims, shape, type_of(format), device);
  if (is_numpy(like)) return new_numpy_array(dims, shape, table.dtype_of[static_cast<int>(format)]);
  return nb::handle(table.helper)
      .attr("empty_like")(like, shape_of(dims, shape), static_cast<int>(format));
}

}  // namespace

array array_of(nb::handle object, const argument& what) {
  if (is_numpy(object)) return numpy_array(object, what);
  if (const exchange_table* const library = exchange_table_of(object, table.helper)) {
    return torch_array(object, *library, what);
  }
  const int numpy = PyObject_IsInstance(object.ptr(), table.ndarray);
  if (numpy < 0) throw nb::python_error();
  if (numpy > 0) return numpy_array(object, what);
  if (nb::hasattr(object, "__dlpack__") &&
      !nb::cast<bool>(nb::handle(table.helper).attr("is_scalar")(object))) {
    return dlpack_array(object, what);
  }
  // Scalars of NumPy and objects with a buffer become NumPy arrays. A buffer is not copied.
  const nb::object adopted = nb::handle(table.helper).attr("adopt")(object, what.name);
  array a = numpy_array(adopted, what);
  a.owner = nb::make_tuple(a.owner, adopted);
  return a;
}

nb::object empty_like(nb::handle like, nb::handle shape, format_id format) {
  std::int64_t sizes[max_dims];
  const int dims = static_cast<int>(nb::len(shape));
  if (dims > max_dims) refuse("dims", like, {.name = "out"});
  for (int i = 0; i < dims; ++i) sizes[i] = nb::cast<std::int64_t>(shape[i]);
  const exchange_table* const library =
      is_numpy(like) ? nullptr : exchange_table_of(like, table.helper);
  const dl_device_id device =
      library == nullptr ? dl_device_id{} : describe_tensor(*library, like).device;
  return new_array_like(like, library, device, dims, sizes, format);
}

output new_output(nb::handle like, const array& in, int dims, const std::int64_t* shape,
                  format_id format) {
  const argument what = {.name = "out", .needs = access::write, .format = format};
  output out;
  out.object = new_array_like(like, in.library, in.device, dims, shape, format);
  if (in.library != nullptr || !is_numpy(like)) {
    out.a = array_of(out.object, what);
    return out;
  }
  out.a.format = format;
  out.a.bytes = storage_bytes(format);
  read_layout(out.object, what, out.a);
  return out;
}

nb::object torch_workspace(const array& on, std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  return new_tensor(*on.library, 1, &size, {dl_code::unsigned_integer, 8, 1}, on.device);
}

void mark_written(nb::handle tensors) { nb::handle(table.helper).attr("mark_written")(tensors); }

format_id format_named(nb::handle name, const char* argument) {
  if (PyUnicode_Check(name.ptr())) {
    PyObject* const found = PyDict_GetItem(table.formats, name.ptr());  // borrowed
    if (found != nullptr) return static_cast<format_id>(PyLong_AsLong(found));
  }
  return static_cast<format_id>(
      nb::cast<int>(nb::handle(table.helper).attr("format_index")(name, argument)));
}

nb::tuple shape_of(int dims, const std::int64_t* shape) {
  nb::object sizes = nb::steal(PyTuple_New(dims));
  for (int i = 0; i < dims; ++i) {
    PyTuple_SetItem(sizes.ptr(), i, PyLong_FromLongLong(shape[i]));
  }
  return nb::borrow<nb::tuple>(sizes);
}

namespace {

// Fills the table. `results` has a dtype for each format, one of `codes` for a format without its own.
void register_dtypes(nb::list results, nb::list codes) {
  const auto add = [](nb::handle dtype, std::optional<format_id> format) {
    if (table.count >= 32) raise_internal("the table of dtypes is full");
    const auto bytes = nb::cast<std::int64_t>(dtype.attr("itemsize"));
    table.rows[table.count++] = {dtype.inc_ref().ptr(), format, bytes};
  };
  for (int i = 0; i < format_count; ++i) {
    const nb::object dtype = results[static_cast<std::size_t>(i)];
    table.dtype_of[i] = dtype.inc_ref().ptr();
    const bool own = PySequence_Contains(codes.ptr(), dtype.ptr()) == 0;
    if (own && format_at(i) != format_id::tf32) add(dtype, format_at(i));
  }
  for (const nb::handle dtype : codes) add(dtype, std::nullopt);
}

}  // namespace

void bind_arrays(nb::module_& m) {
  m.def(
      "register_numpy",
      [](nb::object ndarray, nb::object functions, nb::object float64, nb::object helper,
         nb::dict formats) {
        register_numpy(ndarray, functions, float64);
        table.ndarray = ndarray.release().ptr();
        table.helper = helper.release().ptr();
        table.formats = formats.release().ptr();
        table.is_neg_text = PyUnicode_InternFromString("is_neg");
      },
      nb::arg("ndarray"), nb::arg("functions"), nb::arg("float64"), nb::arg("helper"),
      nb::arg("formats"),
      "Gives the core numpy.ndarray, NumPy's table of C functions, the dtype float64, the module "
      "of refusals, and the formats by name.");
  m.def(
      "empty_like",
      [](nb::handle like, nb::handle shape, nb::handle format) {
        return empty_like(like, shape, format_named(format, "to"));
      },
      nb::arg("like").none(), nb::arg("shape"), nb::arg("format"),
      "Returns a new array of the library and device of `like`.");
  def(m, "register_dtypes", &register_dtypes,
      "Gives the core the dtype of each format's results, and those of unsigned integers.");
}

}  // namespace samebits::python
