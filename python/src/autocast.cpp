// The table of autocast.
#include "c_call.hpp"

namespace samebits::python {
namespace {

const char* rule_name(const char* operation, bool apex) {
  std::int32_t found = 0;
  c::check(apex ? samebits_apex_rule_of(operation, &found)
                : samebits_autocast_rule_of(operation, &found));
  return samebits_enum_name(SAMEBITS_ENUM_AUTOCAST_RULE, found);
}

// Returns (operands, gradients, result), or None for a banned operation.
nb::object formats_of(const char* operation, int precision, int widest) {
  samebits_operation_formats f = {};
  c::check(samebits_operation_formats_of(operation, precision, widest, &f));
  if (f.operands < 0) return nb::none();
  const auto name = [](std::int32_t v) { return samebits_enum_name(SAMEBITS_ENUM_FORMAT, v); };
  return nb::make_tuple(name(f.operands), name(f.gradients), name(f.result));
}

}  // namespace

void bind_autocast(nb::module_& m) {
  m.def("autocast_rule", &rule_name, nb::arg("operation"), nb::arg("apex"),
        "Returns the name of an operation's rule.");
  m.def("autocast_formats", &formats_of, nb::arg("operation"), nb::arg("precision"),
        nb::arg("widest"), "Returns the formats of an operation, or None.");
}

}  // namespace samebits::python
