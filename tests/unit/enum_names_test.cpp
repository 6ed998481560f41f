// Names of enumerators: the name at each place is that of the enumerator with this value in code.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "samebits/autocast.hpp"
#include "samebits/options.hpp"
#include "samebits/samebits.hpp"
#include "samebits/verify.hpp"

namespace samebits {
namespace {

/// The name of an enumerator in code, from the compiler's text of this function: "... [with auto Value =
/// samebits::rounding::upward; ...]". A value without an enumerator gives a cast: "rounding)7".
template <auto Value>
std::string name_in_code() {
  const std::string text = __PRETTY_FUNCTION__;
  const std::size_t begin = text.find("Value = ");
  const std::string value = text.substr(begin, text.find_first_of(";]", begin) - begin);
  return value.substr(value.rfind(':') + 1);
}

template <class Enum>
void expect_names_of_code() {
  for (const auto& row : table_of<Enum>) {
    std::string name(row.name);
    std::replace(name.begin(), name.end(), '-', '_');
    std::replace(name.begin(), name.end(), ' ', '_');
    EXPECT_EQ(with_enumerator(row.value, []<Enum Value>() { return name_in_code<Value>(); }), name);
  }
  constexpr auto behind = static_cast<Enum>(enum_count<Enum>);
  EXPECT_NE(name_in_code<behind>().find(')'), std::string::npos) << "there are more enumerators";
}

template <class... Enums>
void expect_all() {
  (expect_names_of_code<Enums>(), ...);
}

TEST(EnumNames, AreThoseInCode) {
  expect_all<accumulation, accumulator_kind, addend, at_minimum, attention_kernel, autocast_rule,
             axis_reduction, codebook, codebook_steps, evidence, function, function_rule, headroom,
             history_choice, inspect_counts, loss_fault, loss_reduction, low_part, memory_space,
             nan_policy, nonfinite, number_class, operation, overflow, packing, recipe_evidence,
             rotary_angle, rounding, scale_change, scale_layout, scale_order, scale_overflow,
             scale_padding, scale_rule, scale_source, scaling_policy, slice_order, slice_rounding,
             slice_sum, specials, step_cause, stored_format, stream_purpose, sum_order, tensor_unit,
             training_precision, unpackable, update_profile, update_rule, verify_extent,
             zero_step>();
}

TEST(EnumNames, OfTensorOperandsAreThoseOfTheirFormats) {
  EXPECT_EQ(name(tensor_operands::binary16), "fp16");
  EXPECT_EQ(name(tensor_operands::bfloat16), "bf16");
  EXPECT_EQ(name(tensor_operands::tf32), "tf32");
  EXPECT_EQ(name(tensor_operands::fp8), "fp8");
}

}  // namespace
}  // namespace samebits
