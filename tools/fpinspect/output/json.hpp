// JSON documents as values: exact 64-bit integers, and the shortest text of each number.
#pragma once

#include <concepts>
#include <initializer_list>
#include <variant>

#include "fpinspect/common.hpp"

namespace fpinspect {

class json_object;
class json_array;

/// Any value of JSON. Copies are cheap.
class json_value {
 public:
  json_value(std::nullopt_t) {}
  template <std::integral Integer>
  json_value(Integer number) {
    if constexpr (std::same_as<Integer, bool>) {
      held_ = number;
    } else if constexpr (std::signed_integral<Integer>) {
      held_ = std::int64_t{number};
    } else {
      held_ = std::uint64_t{number};
    }
  }
  /// The shortest decimal that reads back as the same binary64 number; null for NaN and infinities.
  json_value(double number) : held_(std::optional(number)) {}
  /// Each byte that is not valid UTF-8 becomes U+FFFD.
  json_value(std::string text) : held_(std::move(text)) {}
  json_value(std::string_view text) : held_(std::string(text)) {}
  json_value(const char* text) : held_(std::string(text)) {}
  template <class T>
  json_value(const std::optional<T>& maybe) {
    if (maybe) {
      *this = json_value(*maybe);
    } else if constexpr (std::same_as<T, double>) {
      held_ = std::optional<double>();
    }
  }
  /// An array on one line.
  json_value(std::span<const std::uint64_t> numbers);
  json_value(const std::vector<std::uint64_t>& numbers)
      : json_value(std::span<const std::uint64_t>(numbers)) {}
  json_value(json_object object);
  json_value(json_array array);

  /// A number or a string as a cell of a table shows it.
  [[nodiscard]] std::string text() const;

 private:
  friend class json_writer;
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, std::optional<double>,
               std::string, std::shared_ptr<const json_object>, std::shared_ptr<const json_array>>
      held_;
};

struct json_member {
  std::string key;
  json_value value;
};

/// An object with a member on each line.
class json_object {
 public:
  json_object() = default;
  json_object(std::initializer_list<json_member> members) : members_(members) {}

  json_object& add(std::string_view key, json_value value) {
    members_.push_back({std::string(key), std::move(value)});
    return *this;
  }
  json_object& add(const json_object& more) {
    members_.insert(members_.end(), more.members_.begin(), more.members_.end());
    return *this;
  }
  /// Writes the object, and everything in it, on one line.
  json_object& on_one_line() {
    one_line_ = true;
    return *this;
  }

 private:
  friend class json_writer;
  std::vector<json_member> members_;
  bool one_line_ = false;
};

/// An array with a value on each line.
class json_array {
 public:
  void add(json_value value) { values_.push_back(std::move(value)); }
  json_array& on_one_line() {
    one_line_ = true;
    return *this;
  }

 private:
  friend class json_writer;
  std::vector<json_value> values_;
  bool one_line_ = false;
};

/// An object on one line.
inline json_value json_line(std::initializer_list<json_member> members) {
  return json_object(members).on_one_line();
}

/// The array of value(element) for all elements.
template <class Range, class Function>
json_array json_rows(const Range& all, const Function& value) {
  json_array rows;
  for (const auto& one : all) rows.add(value(one));
  return rows;
}

/// The array of the elements, on one line.
template <class Range>
json_value json_list(const Range& all) {
  json_array list;
  for (const auto& one : all) list.add(json_value(one));
  return list.on_one_line();
}

/// The document with a newline at its end.
std::string json_text(const json_value& document);

/// Whether every member with a binary64 number, such as "amax", is followed by a member "amax_bits"
/// with the bits of this number: "0x3ff0000000000000". Holds for all documents of the process.
void write_json_bits(bool on);

}  // namespace fpinspect
