// The table of autocast.
#include "samebits/autocast.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

std::string_view rule_name(std::string_view operation, bool apex) {
  return name(apex ? apex_rule_of(operation) : autocast_rule_of(operation));
}

// Returns (operands, gradients, result), or None for a banned operation.
nb::object formats_of(std::string_view operation, int precision, int widest) {
  const auto f = samebits::formats_of(operation, static_cast<training_precision>(precision),
                                      static_cast<format_id>(widest));
  if (!f) return nb::none();
  return nb::make_tuple(name(f->operands), name(f->gradients), name(f->result));
}

}  // namespace

void bind_autocast(nb::module_& m) {
  m.def("autocast_rule", &rule_name, nb::arg("operation"), nb::arg("apex"),
        "Returns the name of an operation's rule.");
  m.def("autocast_formats", &formats_of, nb::arg("operation"), nb::arg("precision"),
        nb::arg("widest"), "Returns the formats of an operation, or None.");
}

}  // namespace samebits::python
