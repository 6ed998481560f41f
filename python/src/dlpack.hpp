// DLPack 1.3: the structures that a capsule of __dlpack__ holds, and its import.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace samebits::python {

namespace nb = nanobind;

// Values of DLPack's enums (dlpack.h 1.3).
namespace dl_code {
enum : std::uint8_t {
  integer = 0,
  unsigned_integer = 1,
  real = 2,
  bfloat = 4,
  e4m3fn = 10,
  e4m3fnuz = 11,
  e5m2 = 12,
  e5m2fnuz = 13,
  e8m0fnu = 14,
};
}
namespace dl_device {
enum : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3 };
}

struct dl_device_id {
  std::int32_t type;
  std::int32_t id;
};

struct dl_data_type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct dl_tensor {
  void* data;
  dl_device_id device;
  std::int32_t dims;
  dl_data_type type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: C-contiguous
  std::uint64_t byte_offset;
};

struct dl_managed_versioned {  // capsule "dltensor_versioned"
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(dl_managed_versioned*);
  std::uint64_t flags;
  dl_tensor tensor;
};

/// A tensor and the capsule that keeps its memory alive.
struct dlpack_tensor {
  const dl_tensor* tensor;
  bool read_only;
  nb::object capsule;
};

/// Asks an object for its tensor. The capsule is not marked as used, so its destructor frees the
/// tensor when the capsule is destroyed.
///
/// @param object  has __dlpack__
/// @param stream  for device memory: the stream on which the call will read the tensor
/// @param helper  the module samebits.arrays
/// @param name  name of the argument in messages
/// @throws samebits.InvalidArgument with the message of the object's library if it refuses.
dlpack_tensor import_dlpack(nb::handle object, void* stream, nb::handle helper, const char* name);

}  // namespace samebits::python
