// Backends, self-test and verification.
#include <exception>

#include "c_call.hpp"

namespace samebits::python {
namespace {

nb::list backends() {
  nb::list result;
  c::check(samebits_list_backends(
      [](void* user, const samebits_backend* b) {
        static_cast<nb::list*>(user)->append(nb::make_tuple(
            b->name, b->description, b->memory == SAMEBITS_MEMORY_HOST ? "host" : "device",
            b->supported != 0, b->is_default != 0, b->why_unsupported));
      },
      &result));
  return result;
}

nb::list self_test(nb::handle backend) {
  nb::list result;
  std::int32_t failed = 0;
  const host_guard guard;
  c::check(samebits_self_test(
      text_of(backend, "backend").data(),
      [](void* user, const samebits_self_test_result* r) {
        static_cast<nb::list*>(user)->append(
            nb::make_tuple(r->backend, r->check, r->passed != 0, r->detail));
      },
      &result, &failed));
  return result;
}

// Receives the entries of verify(). The library calls back without the GIL.
struct verification_list {
  nb::list entries;
  nb::handle on_result;
  std::exception_ptr raised = nullptr;
};

void add_verification(void* user, const samebits_verification* v) {
  auto& list = *static_cast<verification_list*>(user);
  const nb::gil_scoped_acquire acquire;
  if (list.raised || PyErr_Occurred() != nullptr) return;
  try {
    nb::object entry =
        nb::make_tuple(v->backend, v->what, v->compared, v->differed, v->first_difference);
    list.entries.append(entry);
    if (!list.on_result.is_none()) list.on_result(entry);
  } catch (...) {  // raised again by verify()
    list.raised = std::current_exception();
  }
}

nb::list verify(nb::handle backend, int extent, int threads, nb::handle on_result) {
  samebits_verify_options options = SAMEBITS_VERIFY_OPTIONS_INIT;
  options.backend = text_of(backend, "backend").data();
  options.extent = extent;
  options.threads = threads;
  verification_list list = {.entries = {}, .on_result = on_result};
  c::run([&] { return samebits_verify(&options, add_verification, &list, nullptr, nullptr); });
  if (list.raised) std::rethrow_exception(list.raised);
  return list.entries;
}

}  // namespace

void bind_backends(nb::module_& m) {
  m.def("backends", &backends, "Returns the fields of samebits.Backend.");
  m.def("self_test", &self_test, nb::arg("backend").none(),
        "Returns the fields of samebits.SelfTest.");
  m.def(
      "initialize",
      [](nb::handle backend) {
        const char* const name = text_of(backend, "backend").data();
        c::run([&] { return samebits_initialize(name); });
      },
      nb::arg("backend").none(), "Runs the self-test and remembers that it passed.");
  m.def("verify", &verify, nb::arg("backend").none(), nb::arg("extent"), nb::arg("threads"),
        nb::arg("on_result").none(), "Returns the fields of samebits.Verification.");
}

}  // namespace samebits::python
