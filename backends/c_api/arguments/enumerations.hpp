// The C enumeration of each C++ enumeration, and range checks of enumerators.
#pragma once

#include <cstdint>

#include "samebits/c/base.h"
#include "samebits/samebits.hpp"
#include "samebits/verify.hpp"

namespace samebits::c_api {

/// Returns whether `value` is an enumerator.
bool is_enumerator(samebits_enumeration enumeration, std::int32_t value);

/// Throws invalid_argument unless `value` is an enumerator. The message names
/// the argument: `which` followed by `field`.
void check_enumerator(samebits_enumeration enumeration, std::int32_t value, const char* which,
                      const char* field = "");

/// The C enumeration with the values of a C++ enumeration.
template <class Enum>
inline constexpr samebits_enumeration enumeration_of = -1;
template <>
inline constexpr samebits_enumeration enumeration_of<memory_space> = SAMEBITS_ENUM_MEMORY;
template <>
inline constexpr samebits_enumeration enumeration_of<format_id> = SAMEBITS_ENUM_FORMAT;
template <>
inline constexpr samebits_enumeration enumeration_of<rounding> = SAMEBITS_ENUM_ROUNDING;
template <>
inline constexpr samebits_enumeration enumeration_of<overflow> = SAMEBITS_ENUM_OVERFLOW;
template <>
inline constexpr samebits_enumeration enumeration_of<nan_policy> = SAMEBITS_ENUM_NAN_POLICY;
template <>
inline constexpr samebits_enumeration enumeration_of<operation> = SAMEBITS_ENUM_OPERATION;
template <>
inline constexpr samebits_enumeration enumeration_of<function> = SAMEBITS_ENUM_FUNCTION;
template <>
inline constexpr samebits_enumeration enumeration_of<function_rule> = SAMEBITS_ENUM_FUNCTION_RULE;
template <>
inline constexpr samebits_enumeration enumeration_of<accumulation> = SAMEBITS_ENUM_ACCUMULATION;
template <>
inline constexpr samebits_enumeration enumeration_of<sum_order> = SAMEBITS_ENUM_SUM_ORDER;
template <>
inline constexpr samebits_enumeration enumeration_of<scale_rule> = SAMEBITS_ENUM_SCALE_RULE;
template <>
inline constexpr samebits_enumeration enumeration_of<nonfinite> = SAMEBITS_ENUM_NONFINITE;
template <>
inline constexpr samebits_enumeration enumeration_of<scale_overflow> = SAMEBITS_ENUM_SCALE_OVERFLOW;
template <>
inline constexpr samebits_enumeration enumeration_of<scale_source> = SAMEBITS_ENUM_SCALE_SOURCE;
template <>
inline constexpr samebits_enumeration enumeration_of<scale_layout> = SAMEBITS_ENUM_SCALE_LAYOUT;
template <>
inline constexpr samebits_enumeration enumeration_of<scale_padding> = SAMEBITS_ENUM_SCALE_PADDING;
template <>
inline constexpr samebits_enumeration enumeration_of<unpackable> = SAMEBITS_ENUM_UNPACKABLE;
template <>
inline constexpr samebits_enumeration enumeration_of<history_choice> = SAMEBITS_ENUM_HISTORY_CHOICE;
template <>
inline constexpr samebits_enumeration enumeration_of<zero_step> = SAMEBITS_ENUM_ZERO_STEP;
template <>
inline constexpr samebits_enumeration enumeration_of<inspect_counts> = SAMEBITS_ENUM_INSPECT_COUNTS;
template <>
inline constexpr samebits_enumeration enumeration_of<scaling_policy> = SAMEBITS_ENUM_SCALING_POLICY;
template <>
inline constexpr samebits_enumeration enumeration_of<accumulator_kind> =
    SAMEBITS_ENUM_ACCUMULATOR_KIND;
template <>
inline constexpr samebits_enumeration enumeration_of<fp32_order> = SAMEBITS_ENUM_FP32_ORDER;
template <>
inline constexpr samebits_enumeration enumeration_of<scale_order> = SAMEBITS_ENUM_SCALE_ORDER;
template <>
inline constexpr samebits_enumeration enumeration_of<addend> = SAMEBITS_ENUM_ADDEND;
template <>
inline constexpr samebits_enumeration enumeration_of<tensor_unit> = SAMEBITS_ENUM_TENSOR_UNIT;
template <>
inline constexpr samebits_enumeration enumeration_of<verify_extent> = SAMEBITS_ENUM_VERIFY_EXTENT;
template <>
inline constexpr samebits_enumeration enumeration_of<training_precision> =
    SAMEBITS_ENUM_TRAINING_PRECISION;
template <>
inline constexpr samebits_enumeration enumeration_of<update_rule> = SAMEBITS_ENUM_UPDATE_RULE;
template <>
inline constexpr samebits_enumeration enumeration_of<update_profile> = SAMEBITS_ENUM_UPDATE_PROFILE;
template <>
inline constexpr samebits_enumeration enumeration_of<stored_format> = SAMEBITS_ENUM_STORED_FORMAT;
template <>
inline constexpr samebits_enumeration enumeration_of<low_part> = SAMEBITS_ENUM_LOW_PART;
template <>
inline constexpr samebits_enumeration enumeration_of<stream_purpose> = SAMEBITS_ENUM_STREAM_PURPOSE;
template <>
inline constexpr samebits_enumeration enumeration_of<rotary_angle> = SAMEBITS_ENUM_ROTARY_ANGLE;

/// Returns a number as an enumerator of a C++ enumeration.
///
/// @throws invalid_argument, naming the argument, if the number is no enumerator.
template <class Enum>
Enum enumerator(std::int32_t value, const char* which, const char* field = "") {
  static_assert(enumeration_of<Enum> >= 0);
  check_enumerator(enumeration_of<Enum>, value, which, field);
  return static_cast<Enum>(value);
}

}  // namespace samebits::c_api
