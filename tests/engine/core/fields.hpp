// The fields of a case in one list, from which the case's text and simpler cases follow.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/core/layout.hpp"
#include "engine/core/text.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::support {

struct named_layout {
  const char* name;
  array_layout& layout;
};

/// Visits the fields of a case, which a function of the case's file lists:
///
///   void describe(rotary_case& c, case_fields& fields) {
///     fields.show("angle", c.options.angle);
///     fields.reset("format", c.format, format_id::fp32);
///     fields.matrices({{"cos", c.cos}, {"sin", c.sin}});
///   }
///
/// A visit writes the text of the case, or makes one change: that of a number. Changes are numbered in
/// the order of the list; each makes a case simpler, and every chain of changes ends.
class case_fields {
 public:
  /// Writes the text.
  case_fields() = default;
  /// Makes the change of a number.
  explicit case_fields(std::size_t change) : writes_(false), before_(change) {}

  [[nodiscard]] std::string text() const { return text_.str(); }
  [[nodiscard]] bool changed() const { return changed_; }

  /// Names and values of fields by turns. A bool is shown by its name if it is true.
  template <class T, class... More>
  void show(const char* what, const T& value, const More&... more) {
    if (writes_) write(what, value);
    if constexpr (sizeof...(more) != 0) show(more...);
  }
  /// Names, fields and their plain values by turns. Each field becomes plain in a simpler case.
  template <class T, class... More>
  void reset(const char* what, T& field, const std::type_identity_t<T>& plain, More&&... more) {
    show(what, field);
    if (change(!(field == plain))) field = plain;
    if constexpr (sizeof...(more) != 0) reset(more...);
  }
  void reset(random_stream& random);

  /// True once, for the change of the number, if the change is possible. Make it then.
  bool change(bool possible = true) {
    if (writes_ || changed_ || !possible) return false;
    return changed_ = before_-- == 0;
  }
  /// Fewer rows or columns: resize(rows, cols) sets them.
  template <class Resize>
  void sizes(std::int64_t rows, std::int64_t cols, const Resize& resize) {
    const auto add = [&](bool smaller, std::int64_t r, std::int64_t k) {
      if (change(smaller)) resize(r, k);
    };
    add(rows > 1, 1, cols);
    add(cols > 1, rows, 1);
    add(rows > 1, rows / 2, cols);
    add(cols > 1, rows, cols / 2);
    add(rows > 0, rows - 1, cols);
    for (const std::int64_t fewer : {4096, 256, 16, 8}) add(cols > fewer, rows, cols - fewer);
    add(cols > 0, rows, cols - 1);
  }
  /// Layouts of one shape: fewer rows or columns of all, dense ones. Columns are multiples of `unit`.
  void matrices(std::initializer_list<named_layout> all, std::int64_t unit = 1);
  /// All but one element of a vector, for each element, while more than `minimum` remain.
  template <class T>
  void fewer(std::vector<T>& all, std::size_t minimum = 0) {
    const std::size_t count = all.size();
    for (std::size_t i = 0; i < count && count > minimum; ++i) {
      if (change()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  /// Begins a line of text.
  void line() { separator_ = "\n    "; }

 private:
  template <class T>
  void write(const char* what, const T& value) {
    if constexpr (std::same_as<T, bool>) {
      if (value) text_ << separator() << what;
    } else if constexpr (requires { value.has_value(); }) {
      if (value) write(what, *value);
    } else {
      text_ << separator() << what;
      put(value);
    }
  }
  template <class T>
  void put(const T& value) {
    if constexpr (requires { text_of(value); }) {
      text_ << ' ' << text_of(value);
    } else if constexpr (requires { name(value); }) {
      text_ << ' ' << name(value);
    } else if constexpr (std::is_enum_v<T>) {
      text_ << ' ' << static_cast<int>(value);
    } else if constexpr (std::floating_point<T>) {  // all digits
      char digits[32];
      text_ << ' ' << std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    } else if constexpr (!std::is_array_v<T> && requires { text_ << value; }) {
      text_ << ' ' << value;
    } else {
      for (const auto& each : value) put(each);
    }
  }
  const char* separator() {
    const char* const now = separator_;
    separator_ = ", ";
    return now;
  }

  bool writes_ = true, changed_ = false;
  std::size_t before_ = 0;  ///< changes that come before the one to make
  std::ostringstream text_;
  const char* separator_ = "";
};

/// The fields that many kinds of cases have, besides those of the case.
template <class Case>
void describe_case(Case& c, case_fields& fields) {
  describe(c, fields);
  if constexpr (requires { c.threads; }) fields.reset("threads", c.threads, 1);
  if constexpr (requires { c.content; }) fields.show("content", c.content);
}

/// The simpler cases of which each makes one change; describe(case, fields) lists the fields.
template <class Case, class Describe>
std::vector<Case> simpler_cases(const Case& from, const Describe& describe) {
  std::vector<Case> all;
  while (true) {
    case_fields fields(all.size());
    Case c = from;
    describe(c, fields);
    if (!fields.changed()) return all;
    all.push_back(std::move(c));
  }
}

}  // namespace samebits::support
