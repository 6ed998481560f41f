// Names of the policies: the vocabulary of the command line and the errors.
#include "samebits/core/rounding.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace samebits {
namespace {

template <class Enum>
std::set<std::string_view> names(int count) {
  std::set<std::string_view> all;
  for (int i = 0; i < count; ++i) all.insert(name(static_cast<Enum>(i)));
  return all;
}

TEST(Rounding, NamesAreTheContracts) {
  EXPECT_EQ(names<rounding>(enum_count<rounding>),
            (std::set<std::string_view>{"nearest_even", "nearest_away", "toward_zero", "upward",
                                        "downward", "to_odd", "stochastic"}));
  EXPECT_EQ(names<overflow>(enum_count<overflow>),
            (std::set<std::string_view>{"ieee", "saturate", "saturate_finite"}));
  EXPECT_EQ(names<nan_policy>(enum_count<nan_policy>),
            (std::set<std::string_view>{"canonical", "preserve_sign"}));
}

TEST(Rounding, ModesAreFoundByName) {
  for (int i = 0; i < enum_count<rounding>; ++i) {
    EXPECT_EQ(find_enumerator<rounding>(name(static_cast<rounding>(i))), static_cast<rounding>(i));
  }
  for (const char* wrong : {"", "nearest", "NEAREST_EVEN", "nearest_even ", "?"}) {
    EXPECT_FALSE(find_enumerator<rounding>(wrong).has_value()) << wrong;
  }
  static_assert(find_enumerator<rounding>("to_odd") == rounding::to_odd);
}

TEST(Rounding, DefaultsAreTheArrayConversions) {
  constexpr cast_rule rule;
  EXPECT_EQ(rule.rounding, rounding::nearest_even);
  EXPECT_EQ(rule.overflow, overflow::ieee);
  EXPECT_EQ(rule.nan, nan_policy::canonical);
  EXPECT_EQ(random_stream{}.bits, 32);
  EXPECT_FALSE(random_stream{}.pitch.has_value());
}

}  // namespace
}  // namespace samebits
