// JSON text, written in order: integers of 64 bits in full and numbers as short as they can be.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fpinspect {

/// The caller sees to it that begin and end match and that objects hold members only.
///
///   json_writer json;
///   json.begin_object();
///   json.member("schema", 1);
///   json.end_object();
class json_writer {
 public:
  enum class layout : std::uint8_t { lines, one_line };

  void begin_object(layout how = layout::lines) { begin('{', how); }
  void begin_array(layout how = layout::lines) { begin('[', how); }
  void end_object() { end('}'); }
  void end_array() { end(']'); }
  void key(std::string_view name);

  /// Text that is not UTF-8 gets U+FFFD for each byte that is not.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) {
    const std::string_view view = text;
    value(view);
  }
  /// The shortest decimal that reads back as the same binary64; null for NaN and infinities.
  void value(double number);
  template <std::integral Integer>
  void value(Integer number) {
    if constexpr (std::same_as<Integer, bool>) {
      scalar(number ? "true" : "false");
    } else {
      scalar(std::to_string(number));
    }
  }
  void value(std::nullopt_t) { scalar("null"); }
  template <class T>
  void value(const std::optional<T>& maybe) {
    if (maybe) {
      value(*maybe);
    } else {
      value(std::nullopt);
    }
  }
  void value(std::span<const std::uint64_t> numbers);

  template <class T>
  void member(std::string_view name, const T& what) {
    key(name);
    value(what);
  }

  /// The finished document with a line end.
  [[nodiscard]] std::string document() const { return text_ + "\n"; }

 private:
  struct level {
    layout how = layout::lines;
    bool empty = true;
  };

  void begin(char bracket, layout how);
  void end(char bracket);
  void scalar(std::string_view text);
  void separate();
  void break_line();

  std::string text_;
  std::vector<level> levels_;
  bool after_key_ = false;
};

}  // namespace fpinspect
