// Names of the enumerators of the C interface.
#include "backends/c_api/arguments/enumerations.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "samebits/c/samebits.h"
#include "samebits/error.hpp"

namespace samebits::c_api {
namespace {

/// An enumeration: its C type, and the names of its values 0 .. count - 1.
struct enumeration {
  const char* type = "";
  int count = 0;
  std::string_view (*name)(int) = nullptr;
};

constexpr const char* status_names[] = {"ok",
                                        "invalid_argument",
                                        "unsupported",
                                        "environment_error",
                                        "call_order_error",
                                        "rank_error",
                                        "scale_exhausted",
                                        "cuda_error",
                                        "no_memory",
                                        "internal_error",
                                        "incomplete_write",
                                        "callback_failed"};
constexpr const char* text_style_names[] = {"shortest", "exact_decimal", "hex_float"};

/// The entry of an enumeration whose names are in an array.
template <const auto& Names>
constexpr enumeration listed(const char* type) {
  return {type, static_cast<int>(std::size(Names)),
          [](int value) { return std::string_view(Names[value]); }};
}

/// The entry of a C++ enum with a table.
template <class Enum>
constexpr enumeration named(const char* type) {
  return {type, enum_count<Enum>, [](int value) { return name(static_cast<Enum>(value)); }};
}
template <>
constexpr enumeration named<format_id>(const char* type) {
  return {type, format_count, [](int value) { return name(format_at(value)); }};
}

constexpr int enumeration_count = SAMEBITS_ENUM_ROTARY_ANGLE + 1;

constexpr std::array<enumeration, enumeration_count> make_enumerations() {
  std::array<enumeration, enumeration_count> all;
  all[SAMEBITS_ENUM_STATUS] = listed<status_names>("samebits_status");
  all[SAMEBITS_ENUM_MEMORY] = named<memory_space>("samebits_memory");
  all[SAMEBITS_ENUM_FORMAT] = named<format_id>("samebits_format");
  all[SAMEBITS_ENUM_SPECIALS] = named<specials>("samebits_specials");
  all[SAMEBITS_ENUM_NUMBER_CLASS] = named<number_class>("samebits_number_class");
  all[SAMEBITS_ENUM_ROUNDING] = named<rounding>("samebits_rounding");
  all[SAMEBITS_ENUM_OVERFLOW] = named<overflow>("samebits_overflow");
  all[SAMEBITS_ENUM_NAN_POLICY] = named<nan_policy>("samebits_nan_policy");
  all[SAMEBITS_ENUM_TEXT_STYLE] = listed<text_style_names>("samebits_text_style");
  all[SAMEBITS_ENUM_OPERATION] = named<operation>("samebits_operation");
  all[SAMEBITS_ENUM_ACCUMULATION] = named<accumulation>("samebits_accumulation");
  all[SAMEBITS_ENUM_SUM_ORDER] = named<sum_order>("samebits_sum_order");
  all[SAMEBITS_ENUM_SCALE_RULE] = named<scale_rule>("samebits_scale_rule");
  all[SAMEBITS_ENUM_NONFINITE] = named<nonfinite>("samebits_nonfinite");
  all[SAMEBITS_ENUM_SCALE_OVERFLOW] = named<scale_overflow>("samebits_scale_overflow");
  all[SAMEBITS_ENUM_SCALE_SOURCE] = named<scale_source>("samebits_scale_source");
  all[SAMEBITS_ENUM_RECIPE_EVIDENCE] = named<recipe_evidence>("samebits_recipe_evidence");
  all[SAMEBITS_ENUM_SCALE_LAYOUT] = named<scale_layout>("samebits_scale_layout");
  all[SAMEBITS_ENUM_SCALE_PADDING] = named<scale_padding>("samebits_scale_padding");
  all[SAMEBITS_ENUM_UNPACKABLE] = named<unpackable>("samebits_unpackable");
  all[SAMEBITS_ENUM_HISTORY_CHOICE] = named<history_choice>("samebits_history_choice");
  all[SAMEBITS_ENUM_ZERO_STEP] = named<zero_step>("samebits_zero_step");
  all[SAMEBITS_ENUM_INSPECT_COUNTS] = named<inspect_counts>("samebits_inspect_counts");
  all[SAMEBITS_ENUM_SCALING_POLICY] = named<scaling_policy>("samebits_scaling_policy");
  all[SAMEBITS_ENUM_STEP_CAUSE] = named<step_cause>("samebits_step_cause");
  all[SAMEBITS_ENUM_SCALE_CHANGE] = named<scale_change>("samebits_scale_change");
  all[SAMEBITS_ENUM_ACCUMULATOR_KIND] = named<accumulator_kind>("samebits_accumulator_kind");
  all[SAMEBITS_ENUM_FP32_ORDER] = named<fp32_order>("samebits_fp32_order");
  all[SAMEBITS_ENUM_SCALE_ORDER] = named<scale_order>("samebits_scale_order");
  all[SAMEBITS_ENUM_ADDEND] = named<addend>("samebits_addend");
  all[SAMEBITS_ENUM_TENSOR_UNIT] = named<tensor_unit>("samebits_tensor_unit");
  all[SAMEBITS_ENUM_EVIDENCE] = named<evidence>("samebits_evidence");
  all[SAMEBITS_ENUM_VERIFY_EXTENT] = named<verify_extent>("samebits_verify_extent");
  all[SAMEBITS_ENUM_AUTOCAST_RULE] = named<autocast_rule>("samebits_autocast_rule");
  all[SAMEBITS_ENUM_TRAINING_PRECISION] = named<training_precision>("samebits_training_precision");
  all[SAMEBITS_ENUM_FUNCTION] = named<function>("samebits_function");
  all[SAMEBITS_ENUM_FUNCTION_RULE] = named<function_rule>("samebits_function_rule");
  all[SAMEBITS_ENUM_UPDATE_RULE] = named<update_rule>("samebits_update_rule");
  all[SAMEBITS_ENUM_UPDATE_PROFILE] = named<update_profile>("samebits_update_profile");
  all[SAMEBITS_ENUM_STORED_FORMAT] = named<stored_format>("samebits_stored_format");
  all[SAMEBITS_ENUM_LOW_PART] = named<low_part>("samebits_low_part");
  all[SAMEBITS_ENUM_STREAM_PURPOSE] = named<stream_purpose>("samebits_stream_purpose");
  all[SAMEBITS_ENUM_ROTARY_ANGLE] = named<rotary_angle>("samebits_rotary_angle");
  return all;
}

constexpr std::array<enumeration, enumeration_count> enumerations = make_enumerations();

const enumeration& enumeration_at(samebits_enumeration which) {
  if (which >= 0 && which < enumeration_count) return enumerations[static_cast<std::size_t>(which)];
  throw invalid_argument("enumeration: must be a value of samebits_enumeration, got " +
                         std::to_string(which));
}

std::string names_of(const enumeration& e) {
  std::string text;
  for (int i = 0; i < e.count; ++i) text += (i == 0 ? "" : ", ") + std::string(e.name(i));
  return text;
}

/// Returns the value with a name, or -1.
std::int32_t find(samebits_enumeration which, std::string_view text) {
  if (which == SAMEBITS_ENUM_FORMAT) {
    const std::optional<format_id> format = find_format(text);
    return format ? static_cast<std::int32_t>(*format) : -1;
  }
  const enumeration& e = enumeration_at(which);
  for (int i = 0; i < e.count; ++i) {
    if (e.name(i) == text) return i;
  }
  return -1;
}

}  // namespace

bool is_enumerator(samebits_enumeration enumeration, std::int32_t value) {
  return value >= 0 && value < enumeration_at(enumeration).count;
}

void check_enumerator(samebits_enumeration enumeration, std::int32_t value, const char* which,
                      const char* field) {
  if (is_enumerator(enumeration, value)) return;
  throw invalid_argument(std::string(which) + field + ": must be a value of " +
                         enumeration_at(enumeration).type + ", got " + std::to_string(value));
}

}  // namespace samebits::c_api

namespace api = samebits::c_api;

const char* samebits_enum_name(samebits_enumeration enumeration, int32_t value) {
  if (enumeration < 0 || enumeration >= api::enumeration_count) return nullptr;
  if (!api::is_enumerator(enumeration, value)) return nullptr;
  // Every name is a string literal, which ends with a null byte.
  return api::enumeration_at(enumeration).name(value).data();
}

samebits_status samebits_enum_find(samebits_enumeration enumeration, const char* name,
                                   int32_t* value) {
  return api::guarded([&] {
    const std::string text(&api::required(name, "name"));
    std::int32_t& out = api::required(value, "value");
    const std::int32_t found = api::find(enumeration, text);
    const api::enumeration& e = api::enumeration_at(enumeration);
    if (found < 0) {
      throw samebits::invalid_argument("'" + text + "' is not a name of " + e.type +
                                       "; there are: " + api::names_of(e));
    }
    out = found;
  });
}
