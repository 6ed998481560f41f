// Raises the exceptions of samebits.errors.
#include "errors.hpp"

#include <algorithm>
#include <cctype>
#include <exception>
#include <new>
#include <string_view>

#include "samebits/error.hpp"

namespace samebits::python {
namespace {

nb::object type_named(const char* name) {
  return nb::module_::import_("samebits.errors").attr(name);
}

[[noreturn]] void raise(nb::handle type, const std::string& message) {
  PyErr_SetObject(type.ptr(), nb::str(message.c_str()).ptr());
  throw nb::python_error();
}

bool begins_with_name(std::string_view message, std::string_view name) {
  if (!message.starts_with(name)) return false;
  const char next = message.size() > name.size() ? message[name.size()] : ' ';
  return std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '_';
}

// Names of arguments that differ in the same way in all functions.
constexpr argument_name common_names[] = {{"in", "x"},
                                          {"random.bits", "random_bits"},
                                          {"a_scales.values", "a_scales"},
                                          {"b_scales.values", "b_scales"},
                                          {"a_scales.tile", "a_tile"},
                                          {"b_scales.tile", "b_tile"},
                                          {"level.tensor_scale", "tensor_scale"},
                                          {"known_grad", "known"}};

// The message of an exception and of those nested in it, with the caller's name of the argument.
std::string message_of(const std::exception& error, argument_names names) {
  std::string_view message = error.what();
  for (const std::string_view holder : {"where.", "options.", "outputs.", "in.", "how.", "sum."}) {
    if (message.starts_with(holder)) message.remove_prefix(holder.size());
  }
  std::string text(message);
  const auto rename = [&](const argument_name& n) {
    const bool named = begins_with_name(message, n.cpp);
    if (named) text.replace(0, std::string_view(n.cpp).size(), n.python);
    return named;
  };
  if (std::ranges::none_of(names, rename)) (void)std::ranges::any_of(common_names, rename);
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& cause) {
    text += ": " + message_of(cause, names);
  } catch (...) {
    text += ": an exception of an unknown type";
  }
  return text;
}

}  // namespace

void raise_current(argument_names names) {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();  // of a signal handler
  const auto raise_as = [&](const char* type, const std::exception& e) {
    raise(type_named(type), message_of(e, names));
  };
  try {
    throw;
  } catch (const nb::python_error&) {
    throw;
  } catch (const invalid_argument& e) {
    raise_as("InvalidArgument", e);
  } catch (const unsupported& e) {
    raise_as("Unsupported", e);
  } catch (const environment_error& e) {
    raise_as("EnvironmentCheckFailed", e);
  } catch (const call_order_error& e) {
    raise_as("CallOrderError", e);
  } catch (const rank_error& e) {
    raise_as("RankError", e);
  } catch (const scale_exhausted& e) {
    raise_as("ScaleExhausted", e);
  } catch (const cuda_error& e) {
    const nb::object type = type_named("CudaError");
    PyErr_SetObject(type.ptr(), nb::object(type(e.what(), e.code())).ptr());
    throw nb::python_error();
  } catch (const incomplete_write& e) {
    raise_as("IncompleteWrite", e);
  } catch (const std::bad_alloc&) {
    raise(PyExc_MemoryError, "out of memory");
  } catch (const std::exception& e) {
    raise_internal("internal error: " + message_of(e, {}));
  } catch (...) {
    raise_internal("internal error: an exception of an unknown type");
  }
  raise_internal("raise_current() was called without an exception");
}

void raise_invalid(const std::string& message) { raise(type_named("InvalidArgument"), message); }

void raise_type(const std::string& message) { raise(PyExc_TypeError, message); }

void raise_internal(const std::string& message) { raise(type_named("InternalError"), message); }

}  // namespace samebits::python
