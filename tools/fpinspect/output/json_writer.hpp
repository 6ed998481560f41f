// JSON writer: writes a document in order, with exact 64-bit integers and shortest numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fpinspect {

/// The caller must match begin and end calls and write only members into objects.
///
///   json_writer json;
///   json.begin_object();
///   json.member("schema", 1);
///   json.end_object();
class json_writer {
 public:
  enum class layout : std::uint8_t { lines, one_line };

  /// Whether every member with a binary64 number, such as "amax", is followed by a member
  /// "amax_bits" with the bits of this number: "0x3ff0000000000000". Holds for all documents of the
  /// process.
  static void write_bits(bool on) { with_bits_ = on; }

  void begin_object(layout how = layout::lines) { begin('{', how); }
  void begin_array(layout how = layout::lines) { begin('[', how); }
  void end_object() { end('}'); }
  void end_array() { end(']'); }
  void key(std::string_view name);

  /// Writes a string. Each byte that is not valid UTF-8 becomes U+FFFD.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) {
    const std::string_view view = text;
    value(view);
  }
  /// Writes the shortest decimal that reads back as the same binary64 number; null for NaN and
  /// infinities. With write_bits(), the bits of a member follow.
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
    } else if constexpr (std::same_as<T, double>) {
      number("null", std::nullopt);
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

  /// The finished document with a newline at the end.
  [[nodiscard]] std::string document() const { return text_ + "\n"; }

 private:
  struct level {
    layout how = layout::lines;
    bool empty = true;
  };

  void begin(char bracket, layout how);
  void end(char bracket);
  void scalar(std::string_view text);
  /// Writes a number's text, and its bits if write_bits() is on and the number is a member.
  void number(std::string_view text, const std::optional<std::uint64_t>& bits);
  void separate();
  void break_line();

  // An option of the whole program.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
  static inline bool with_bits_ = false;

  std::string text_;
  std::string last_key_;
  std::vector<level> levels_;
  bool after_key_ = false;
};

}  // namespace fpinspect
