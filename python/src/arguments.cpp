// Reads numbers, flags and names, or raises what is wrong with them.
#include "arguments.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "call.hpp"
#include "errors.hpp"

namespace samebits::python {
namespace {

std::string kind_of(nb::handle value) {
  const std::string kind = nb::cast<std::string>(nb::handle(value.type()).attr("__name__"));
  return (std::strchr("aeiou", kind[0]) != nullptr ? "an " : "a ") + kind;
}

// What a value is: its repr if that is short.
std::string shown(nb::handle value) {
  constexpr std::size_t short_text = 40;
  PyObject* const repr = PyObject_Repr(value.ptr());
  if (repr == nullptr) PyErr_Clear();
  const nb::object owner = nb::steal(repr);
  std::string text;
  if (repr == nullptr || !nb::try_cast(owner, text) || text.size() > short_text) {
    PyErr_Clear();
    return kind_of(value);
  }
  return text;
}

// A bound as people write it: 2^63 - 1.
std::string bound_text(std::uint64_t bound) {
  constexpr std::uint64_t long_number = 1 << 20;
  if (bound >= long_number && (bound & (bound + 1)) == 0) {
    return "2^" + std::to_string(std::bit_width(bound)) + " - 1";
  }
  return std::to_string(bound);
}

}  // namespace

nb::object index_of(nb::handle value, const char* name) {
  if (PyLong_CheckExact(value.ptr())) return nb::borrow(value);
  PyObject* const index =
      PyLong_Check(value.ptr()) ? PyNumber_Long(value.ptr()) : PyNumber_Index(value.ptr());
  if (index != nullptr) return nb::steal(index);
  PyErr_Clear();
  raise_type(std::string(name) + ": an integer is expected; got " + shown(value));
}

void refuse_range(nb::handle value, const char* name, std::int64_t low, std::uint64_t high) {
  raise_invalid(std::string(name) + ": an integer of " + std::to_string(low) + " .. " +
                bound_text(high) + " is expected; got " + shown(value));
}

double number_of(nb::handle value, const char* name) {
  if (PyFloat_Check(value.ptr())) return PyFloat_AsDouble(value.ptr());
  const bool text = PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
  const auto is_complex = [&] { return kind_of(value).find("complex") != std::string::npos; };
  if (!text && (PyLong_Check(value.ptr()) || !is_complex())) {
    const double number = PyFloat_AsDouble(value.ptr());
    if (PyErr_Occurred() == nullptr) return number;
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();
    const bool large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    PyErr_Clear();
    if (large) raise_invalid(std::string(name) + ": a number below 2^1024 is expected");
  }
  raise_type(std::string(name) + ": a number is expected; got " + shown(value));
}

bool flag_of(nb::handle value, const char* name) {
  if (value.ptr() == Py_True || value.ptr() == Py_False) return value.ptr() == Py_True;
  int flag = -1;
  if (PyLong_Check(value.ptr()) && nb::try_cast(value, flag) && (flag == 0 || flag == 1)) {
    return flag == 1;
  }
  const std::string kind = kind_of(value);
  if (kind == "a bool" || kind == "a bool_") return PyObject_IsTrue(value.ptr()) == 1;  // of NumPy
  raise_type(std::string(name) + ": True or False is expected; got " + shown(value));
}

std::string_view text_of(nb::handle text, const char* name) {
  if (text.is_none()) return {};
  Py_ssize_t size = 0;
  const char* const bytes =
      PyUnicode_Check(text.ptr()) ? PyUnicode_AsUTF8AndSize(text.ptr(), &size) : nullptr;
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
  PyErr_Clear();
  raise_type(std::string(name) + ": a string is expected; got " + shown(text));
}

nb::object name_among(nb::handle value, const char* argument, const nb::list& names) {
  return nb::module_::import_("samebits.formats").attr("choose")(argument, value, names);
}

void bind_arguments(nb::module_& m) {
  using nb::arg;
  m.def(
      "integer",
      [](nb::handle value, const char* name, std::int64_t low, std::uint64_t high) -> nb::object {
        nb::object index = index_of(value, name);
        if (index.attr("__lt__")(low).ptr() == Py_True ||
            index.attr("__gt__")(high).ptr() == Py_True) {
          refuse_range(value, name, low, high);
        }
        return index;
      },
      arg("value").none(), arg("name"), arg("low") = std::numeric_limits<std::int64_t>::min(),
      arg("high") = std::numeric_limits<std::uint64_t>::max(),
      nb::sig("def integer(value: object, name: str, low: int = ..., high: int = ...) -> int"),
      "Returns an argument that is an integer of low .. high.");
  m.def("number", &number_of, arg("value").none(), arg("name"),
        "Returns an argument that is one number: of Python, or with one element of an array.");
  m.def("flag", &flag_of, arg("value").none(), arg("name"),
        "Returns an argument that is True or False.");
}

}  // namespace samebits::python
