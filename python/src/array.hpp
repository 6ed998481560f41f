// Arrays that Python passes: NumPy arrays and objects with __dlpack__, without a copy.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "arguments.hpp"
#include "exchange.hpp"
#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"

namespace samebits::python {

namespace nb = nanobind;

inline constexpr int max_dims = 64;  // NumPy's own limit

/// Address, shape, strides and format of an array. Used only during one call.
struct array {
  char* data = nullptr;  ///< element [0, ..., 0]
  int dims = 0;
  std::int64_t shape[max_dims];
  std::int64_t strides[max_dims];  ///< in elements; may be 0 or negative
  format_id format = {};
  std::int64_t bytes = 0;  ///< size of one element
  memory_space memory = memory_space::host;
  bool writable = false;
  const exchange_table* library = nullptr;  ///< of a torch tensor; else null
  dl_device_id device = {};                 ///< of a torch tensor
  nb::object owner;                         ///< keeps the memory alive until the call is done

  [[nodiscard]] std::int64_t size() const {
    std::int64_t n = 1;
    for (int i = 0; i < dims; ++i) n *= shape[i];
    return n;
  }
};

enum class access : std::uint8_t { read, write };

/// How a call uses an argument: its name in errors, access, format and stream.
struct argument {
  const char* name = "";  ///< in error messages
  access needs = access::read;
  std::optional<format_id> format = {};  ///< of integer codes and of tf32; none: the dtype's own
  void* stream = nullptr;  ///< for device memory: the stream on which the call reads the array
  bool integers = false;   ///< signed integers of 64 bits, described as codes of fp64
};

/// Describes an array. Nothing is copied.
///
/// @throws TypeError or samebits.InvalidArgument, naming the argument and the remedy, for an object
///   that is not an array, a dtype that is no format, a byte order that is not the machine's,
///   strides that are no multiple of the element, or a read-only array that would be written.
array array_of(nb::handle object, const argument& what);

/// Returns a new C-contiguous array.
///
/// @param like  the array has the same library and device as this argument
/// @param shape  a tuple
nb::object empty_like(nb::handle like, nb::handle shape, format_id format);

/// Returns memory of torch's allocator for one call on torch's current stream.
///
/// @param on  a torch tensor in device memory
/// @param bytes  [bytes] is the shape of the result, in unsigned bytes
nb::object torch_workspace(const array& on, std::size_t bytes);

/// Tells torch's autograd that a call writes a torch tensor, or the torch tensors of a list.
void mark_written(nb::handle tensors);

/// A new array: the Python object, and its address, shape and format.
struct output {
  nb::object object;
  array a;
};

/// The Python object of an array; None if there is none.
inline nb::object object_of(const output& o) { return o.object.is_valid() ? o.object : nb::none(); }

/// Makes a C-contiguous array with the library and device of `like`.
///
/// @param in  array_of(like)
/// @param shape  [dims]
output new_output(nb::handle like, const array& in, int dims, const std::int64_t* shape,
                  format_id format);
/// Makes a C-contiguous array with the library and device of `like` and the shape of `in`.
inline output new_output(nb::handle like, const array& in, format_id format) {
  return new_output(like, in, in.dims, in.shape, format);
}

/// Returns a shape [dims] as a tuple.
nb::tuple shape_of(int dims, const std::int64_t* shape);
/// Returns the shape of an array as a tuple.
inline nb::tuple shape_of(const array& a) { return shape_of(a.dims, a.shape); }

}  // namespace samebits::python
