// Values as text: writes and reads single values, for options and checkpoints.
//
// All functions work on bits: a process with FTZ or DAZ must not lose a subnormal scale.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "numerics/arithmetic/binary64.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/table.hpp"
#include "samebits/text.hpp"

namespace samebits::backends {

inline std::string value_text(std::integral auto value) { return std::to_string(value); }
inline std::string value_text(bool value) { return value ? "true" : "false"; }
inline std::string value_text(double value) {
  return to_hex_float(format_id::fp64, detail::bits_of(value));
}
inline std::string value_text(float value) {
  return to_hex_float(format_id::fp32, detail::bits_of(value));
}
inline std::string value_text(format_id value) { return std::string(name(value)); }
template <listed_enum Enum>
std::string value_text(Enum value) {
  return std::string(name(value));
}

// read_value() returns false and leaves the value unchanged if the text is not of its type.

template <std::integral T>
bool read_value(std::string_view text, T& value) {
  T read{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  value = read;
  return true;
}

inline bool read_value(std::string_view text, bool& value) {
  const bool yes = text == "true" || text == "True" || text == "1";
  if (!yes && text != "false" && text != "False" && text != "0") return false;
  value = yes;
  return true;
}

/// Rounds to the nearest binary64 number.
inline bool read_value(std::string_view text, double& value) {
  const parse_result read = parse(format_id::fp64, text);
  if (!read.ok) return false;
  value = detail::number_of(read.code);
  return true;
}

/// Accepts only numbers that binary32 holds exactly.
inline bool read_value(std::string_view text, float& value) {
  const parse_result read = parse(format_id::fp64, text);
  const std::uint32_t bits = numerics::binary64::narrow(read.code);
  if (!read.ok || numerics::binary64::widen(bits) != read.code) return false;
  value = detail::number_of(bits);
  return true;
}

inline bool read_value(std::string_view text, format_id& value) {
  const auto found = find_format(text);
  if (found) value = *found;
  return found.has_value();
}

template <listed_enum Enum>
bool read_value(std::string_view text, Enum& value) {
  const auto found = find_enumerator<Enum>(text);
  if (found) value = *found;
  return found.has_value();
}

// expected() words what a refused text should have been.
template <std::integral T>
std::string expected(const T&) {
  return "an integer";
}
inline std::string expected(bool) { return "true or false"; }
inline std::string expected(double) { return "a number"; }
inline std::string expected(float) { return "a number that binary32 holds"; }
inline std::string expected(format_id) { return "the name of a format"; }
template <listed_enum Enum>
std::string expected(Enum) {
  std::string names;
  for (const enum_row<Enum>& row : table_of<Enum>) {
    names += (names.empty() ? "" : " or ") + std::string(row.name);
  }
  return names;
}

}  // namespace samebits::backends
