// Backends, self-test and verification.
#include "samebits/backend.hpp"

#include "call.hpp"
#include "samebits/self_test.hpp"
#include "samebits/verify.hpp"

namespace samebits::python {
namespace {

nb::list backends() {
  nb::list result;
  run_to_end(0, [&] {
    for (const backend_info& b : compiled_backends()) {
      result.append(nb::make_tuple(b.name, b.description, name(b.space), b.supported, b.is_default,
                                   b.why_unsupported));
    }
  });
  return result;
}

nb::list self_test(nb::handle backend) {
  nb::list result;
  run_to_end(0, [&] {
    for (const self_test_result& r : samebits::self_test(text_of(backend, "backend"))) {
      result.append(nb::make_tuple(r.backend, r.check, r.passed, r.detail));
    }
  });
  return result;
}

// `entry_of` makes an entry of the list from its fields.
nb::list verify(nb::handle backend, nb::handle extent, nb::handle threads, nb::handle entry_of,
                nb::handle on_result) {
  nb::list entries;
  verify_options options = {.backend = text_of(backend, "backend"),
                            .extent = enumerator_of<verify_extent>(extent, "extent"),
                            .threads = integer_of<std::int32_t>(threads, "threads", 0)};
  options.on_result = [&](const verification& v) {
    const nb::gil_scoped_acquire acquire;
    const nb::object entry =
        entry_of(v.backend, v.what, v.compared, v.differed, v.first_difference);
    entries.append(entry);
    if (!on_result.is_none()) on_result(entry);
  };
  run([&] { samebits::verify(options); });
  return entries;
}

}  // namespace

void bind_backends(nb::module_& m) {
  m.def("backends", &backends, "Returns the fields of samebits.Backend.");
  def(m, "self_test", &self_test, "Returns the fields of samebits.SelfTest.");
  m.def(
      "initialize",
      [](nb::handle backend) {
        const std::string_view name = text_of(backend, "backend");
        run([&] { initialize(name); });
      },
      nb::arg("backend").none(), "Runs the self-test and remembers that it passed.");
  def(m, "verify", &verify, "Verifies backends; returns a list of entries.");
}

}  // namespace samebits::python
