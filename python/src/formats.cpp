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

// The enumerations besides formats; each has the name of its type.
// clang-format off
#define SAMEBITS_PYTHON_ENUMERATIONS(each)                                                      \
  each(rounding) each(overflow) each(nan_policy) each(operation) each(accumulation)             \
  each(sum_order) each(scale_rule) each(nonfinite) each(scale_overflow) each(scale_source)      \
  each(history_choice) each(zero_step) each(scaling_policy) each(step_cause) each(scale_change) \
  each(accumulator_kind) each(fp32_order) each(scale_order) each(addend) each(slice_order)      \
  each(slice_sum) each(slice_rounding) each(tensor_unit) each(evidence) each(verify_extent)     \
  each(autocast_rule) each(training_precision) each(function) each(attention_kernel)            \
  each(function_rule) each(loss_reduction) each(update_rule) each(update_profile)               \
  each(stored_format) each(low_part) each(stream_purpose) each(rotary_angle) each(packing)      \
  each(scale_layout) each(scale_padding) each(codebook) each(codebook_steps)
// clang-format on

// Returns the names of the values of each enumeration.
nb::dict enumerations() {
  nb::dict names;
  names["format"] = names_of_formats();
#define SAMEBITS_PYTHON_ENUMERATION(name) names[#name] = names_of<name>();
  SAMEBITS_PYTHON_ENUMERATIONS(SAMEBITS_PYTHON_ENUMERATION)
  return names;
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
  m.def("enumerations", &enumerations, "Returns the names of all enumerations' values.");
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
