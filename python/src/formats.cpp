// Formats and the names of enumerators.
#include <cstring>

#include "c_call.hpp"

namespace samebits::python {
namespace {

struct enumeration {
  const char* name;
  samebits_enumeration number;
};
constexpr enumeration enumerations[] = {
    {"format", SAMEBITS_ENUM_FORMAT},
    {"rounding", SAMEBITS_ENUM_ROUNDING},
    {"overflow", SAMEBITS_ENUM_OVERFLOW},
    {"nan_policy", SAMEBITS_ENUM_NAN_POLICY},
    {"operation", SAMEBITS_ENUM_OPERATION},
    {"accumulation", SAMEBITS_ENUM_ACCUMULATION},
    {"sum_order", SAMEBITS_ENUM_SUM_ORDER},
    {"scale_rule", SAMEBITS_ENUM_SCALE_RULE},
    {"nonfinite", SAMEBITS_ENUM_NONFINITE},
    {"scale_overflow", SAMEBITS_ENUM_SCALE_OVERFLOW},
    {"history_choice", SAMEBITS_ENUM_HISTORY_CHOICE},
    {"zero_step", SAMEBITS_ENUM_ZERO_STEP},
    {"scaling_policy", SAMEBITS_ENUM_SCALING_POLICY},
    {"step_cause", SAMEBITS_ENUM_STEP_CAUSE},
    {"scale_change", SAMEBITS_ENUM_SCALE_CHANGE},
    {"accumulator_kind", SAMEBITS_ENUM_ACCUMULATOR_KIND},
    {"fp32_order", SAMEBITS_ENUM_FP32_ORDER},
    {"scale_order", SAMEBITS_ENUM_SCALE_ORDER},
    {"addend", SAMEBITS_ENUM_ADDEND},
    {"tensor_unit", SAMEBITS_ENUM_TENSOR_UNIT},
    {"evidence", SAMEBITS_ENUM_EVIDENCE},
    {"verify_extent", SAMEBITS_ENUM_VERIFY_EXTENT},
    {"autocast_rule", SAMEBITS_ENUM_AUTOCAST_RULE},
    {"training_precision", SAMEBITS_ENUM_TRAINING_PRECISION},
    {"function", SAMEBITS_ENUM_FUNCTION},
    {"function_rule", SAMEBITS_ENUM_FUNCTION_RULE},
    {"update_rule", SAMEBITS_ENUM_UPDATE_RULE},
    {"update_profile", SAMEBITS_ENUM_UPDATE_PROFILE},
    {"stored_format", SAMEBITS_ENUM_STORED_FORMAT},
    {"low_part", SAMEBITS_ENUM_LOW_PART},
    {"stream_purpose", SAMEBITS_ENUM_STREAM_PURPOSE},
    {"rotary_angle", SAMEBITS_ENUM_ROTARY_ANGLE},
};

nb::list names(const char* wanted) {
  nb::list result;
  for (const enumeration& e : enumerations) {
    if (std::strcmp(e.name, wanted) != 0) continue;
    for (int i = 0; const char* name = samebits_enum_name(e.number, i); ++i) result.append(name);
  }
  return result;
}

int find_format(const char* name) {
  std::int32_t format = -1;
  return samebits_enum_find(SAMEBITS_ENUM_FORMAT, name, &format) == SAMEBITS_OK ? format : -1;
}

nb::dict format_properties(int format) {
  samebits_format_info info;
  c::check(samebits_get_format_info(format, &info));
  const bool has_inf = info.specials == SAMEBITS_SPECIALS_IEEE;
  nb::dict d;
  d["name"] = info.name;
  d["bits"] = info.bits;
  d["storage_bits"] = info.storage_bits;
  d["exponent_bits"] = info.exponent_bits;
  d["mantissa_bits"] = info.mantissa_bits;
  d["bias"] = info.bias;
  d["max"] = info.max_value;
  d["smallest_normal"] = info.min_normal_value;
  d["smallest_subnormal"] = info.min_positive_value;
  d["eps"] = info.epsilon;
  d["has_inf"] = has_inf;
  d["has_nan"] = info.specials != SAMEBITS_SPECIALS_NONE;
  return d;
}

}  // namespace

void bind_formats(nb::module_& m) {
  m.def("names", &names, nb::arg("enumeration"), "Returns the names of an enumeration's values.");
  m.def("find_format", &find_format, nb::arg("name"),
        "Returns the number of a format by any of its names, or -1.");
  m.def(
      "format_bytes",
      [](int format) {
        samebits_format_info info;
        c::check(samebits_get_format_info(format, &info));
        return info.storage_bits / 8;
      },
      nb::arg("format"), "Returns the bytes of one code.");
  m.def("format_properties", &format_properties, nb::arg("format"),
        "Returns the fields of samebits.FloatInfo.");
}

}  // namespace samebits::python
