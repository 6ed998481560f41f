// The table of autocast.
#include "samebits/autocast.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

std::string_view name_of_operation(nb::handle operation) {
  if (operation.is_none()) raise_type("operation: a string is expected; got a NoneType");
  return text_of(operation, "operation");
}

std::string_view rule_name(nb::handle operation, bool apex) {
  const std::string_view text = name_of_operation(operation);
  return name(apex ? apex_rule_of(text) : autocast_rule_of(text));
}

// Returns (operands, gradients, result), or None for a banned operation.
nb::object formats_of(nb::handle operation, nb::handle precision, nb::handle widest) {
  const auto f = samebits::formats_of(name_of_operation(operation),
                                      enumerator_of<training_precision>(precision, "precision"),
                                      format_named(widest, "widest"));
  if (!f) return nb::none();
  return nb::make_tuple(name(f->operands), name(f->gradients), name(f->result));
}

}  // namespace

void bind_autocast(nb::module_& m) {
  def(m, "autocast_rule", &rule_name, "Returns the name of an operation's rule.");
  def(m, "autocast_formats", &formats_of, "Returns the formats of an operation, or None.");
}

}  // namespace samebits::python
