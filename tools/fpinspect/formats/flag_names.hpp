// Names of the IEEE 754 exception flags, as `fpinspect arith` writes them.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "samebits/arithmetic.hpp"

namespace fpinspect {

struct named_flag {
  samebits::flags flag;
  std::string_view name;
};
inline constexpr std::array<named_flag, 5> named_flags{
    {{samebits::flags::invalid, "invalid"},
     {samebits::flags::divide_by_zero, "divide_by_zero"},
     {samebits::flags::overflow, "overflow"},
     {samebits::flags::underflow, "underflow"},
     {samebits::flags::inexact, "inexact"}}};

/// The names of the raised flags, in the order of the table.
inline std::vector<std::string_view> names_of(samebits::flags raised) {
  std::vector<std::string_view> names;
  for (const named_flag& f : named_flags) {
    if (has(raised, f.flag)) names.push_back(f.name);
  }
  return names;
}

}  // namespace fpinspect
