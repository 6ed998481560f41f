// Imports a DLPack capsule.
#include "dlpack.hpp"

#include "errors.hpp"

namespace samebits::python {
namespace {

struct dl_managed {  // before DLPack 1.0: capsule "dltensor"
  dl_tensor tensor;
  void* context;
  void (*deleter)(dl_managed*);
};

constexpr std::uint64_t flag_read_only = 1;

}  // namespace

dlpack_tensor import_dlpack(nb::handle object, void* stream, nb::handle helper, const char* name) {
  nb::object capsule =
      helper.attr("dlpack_capsule")(object, reinterpret_cast<std::uintptr_t>(stream), name);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    const auto* m = static_cast<const dl_managed_versioned*>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (m->major != 1) raise_internal("a DLPack capsule with a major version other than 1");
    return {&m->tensor, (m->flags & flag_read_only) != 0, std::move(capsule)};
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    const auto* m = static_cast<const dl_managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    return {&m->tensor, false, std::move(capsule)};
  }
  raise_type(std::string(name) + ": __dlpack__ did not return an unused DLPack capsule");
}

}  // namespace samebits::python
