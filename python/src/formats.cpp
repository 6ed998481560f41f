// Formats and the names of enumerators.
#include "call.hpp"
#include "samebits/samebits.hpp"
#include "samebits/verify.hpp"

namespace samebits::python {
namespace {

nb::list names_of_formats() {
  nb::list result;
  for (int i = 0; i < format_count; ++i) result.append(name(format_at(i)));
  return result;
}

constexpr struct {
  std::string_view name;
  nb::list (*names)();
} enumerations[] = {
    {"format", names_of_formats},
    {"rounding", names_of<rounding>},
    {"overflow", names_of<overflow>},
    {"nan_policy", names_of<nan_policy>},
    {"operation", names_of<operation>},
    {"accumulation", names_of<accumulation>},
    {"sum_order", names_of<sum_order>},
    {"scale_rule", names_of<scale_rule>},
    {"nonfinite", names_of<nonfinite>},
    {"scale_overflow", names_of<scale_overflow>},
    {"scale_source", names_of<scale_source>},
    {"history_choice", names_of<history_choice>},
    {"zero_step", names_of<zero_step>},
    {"scaling_policy", names_of<scaling_policy>},
    {"step_cause", names_of<step_cause>},
    {"scale_change", names_of<scale_change>},
    {"accumulator_kind", names_of<accumulator_kind>},
    {"fp32_order", names_of<fp32_order>},
    {"scale_order", names_of<scale_order>},
    {"addend", names_of<addend>},
    {"slice_order", names_of<slice_order>},
    {"slice_sum", names_of<slice_sum>},
    {"slice_rounding", names_of<slice_rounding>},
    {"tensor_unit", names_of<tensor_unit>},
    {"evidence", names_of<evidence>},
    {"verify_extent", names_of<verify_extent>},
    {"autocast_rule", names_of<autocast_rule>},
    {"training_precision", names_of<training_precision>},
    {"function", names_of<function>},
    {"attention_kernel", names_of<attention_kernel>},
    {"function_rule", names_of<function_rule>},
    {"loss_reduction", names_of<loss_reduction>},
    {"update_rule", names_of<update_rule>},
    {"update_profile", names_of<update_profile>},
    {"stored_format", names_of<stored_format>},
    {"low_part", names_of<low_part>},
    {"stream_purpose", names_of<stream_purpose>},
    {"rotary_angle", names_of<rotary_angle>},
    {"packing", names_of<packing>},
    {"scale_layout", names_of<scale_layout>},
    {"scale_padding", names_of<scale_padding>},
    {"codebook", names_of<codebook>},
    {"codebook_steps", names_of<codebook_steps>},
};

nb::list names(std::string_view wanted) {
  for (const auto& e : enumerations) {
    if (e.name == wanted) return e.names();
  }
  raise_internal("no such enumeration");
}

int find_format_number(std::string_view name) {
  const std::optional<format_id> found = find_format(name);
  return found ? static_cast<int>(*found) : -1;
}

nb::dict format_properties(int number) {
  const auto format = static_cast<format_id>(number);
  const format_spec s = spec_of(format);
  const std::uint64_t one = convert_code(format_id::fp64, format, 0x3FF0000000000000).code;
  nb::dict d;
  d["name"] = s.name;
  d["bits"] = (s.special == specials::scale ? 0 : 1) + s.exponent_bits + s.mantissa_bits;
  d["storage_bits"] = s.storage_bits;
  d["exponent_bits"] = s.exponent_bits;
  d["mantissa_bits"] = s.mantissa_bits;
  d["bias"] = s.bias;
  d["max"] = decode_double(format, max_finite(format));
  d["smallest_normal"] = decode_double(format, min_normal(format));
  d["smallest_subnormal"] = decode_double(format, min_positive(format));
  d["eps"] = decode_double(format, next_up(format, one)) - 1;
  d["has_inf"] = s.special == specials::ieee;
  d["has_nan"] = s.special != specials::none;
  return d;
}

}  // namespace

void bind_formats(nb::module_& m) {
  def(m, "names", &names, "Returns the names of an enumeration's values.");
  m.def(
      "enumerations",
      [] {
        nb::dict names;
        for (const auto& e : enumerations) names[nb::cast(e.name)] = e.names();
        return names;
      },
      "Returns the names of all enumerations' values.");
  m.def(
      "format_aliases",
      [] { return list_of(detail::format_aliases, [](const auto& alias) { return alias.text; }); },
      "Returns the names that other libraries have for formats.");
  def(m, "find_format", &find_format_number,
      "Returns the number of a format by any of its names, or -1.");
  m.def(
      "format_bytes", [](int format) { return storage_bytes(static_cast<format_id>(format)); },
      nb::arg("format"), "Returns the bytes of one code.");
  def(m, "format_properties", &format_properties, "Returns the fields of samebits.FloatInfo.");
}

}  // namespace samebits::python
