// Lines of a loss scaler's checkpoint: a policy, its settings and its state, one value a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/api/value_text.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits::backends {

template <class T>
void add_line(std::string& text, std::string_view word, const T& value) {
  text += std::string(word) + " " + value_text(value) + "\n";
}

/// Reads the lines of a saved text in order; each line is "word rest". Errors name `call` and the
/// line.
class line_reader {
 public:
  line_reader(std::string_view text, std::string_view call) : call_(call), rest_(text) {}

  /// Returns the rest of the next line, which must begin with `word`.
  std::string_view after(std::string_view word) {
    const std::string_view line = next();
    if (line.size() <= word.size() || !line.starts_with(word) || line[word.size()] != ' ') {
      refuse("expected \"" + std::string(word) + " ...\"");
    }
    return line.substr(word.size() + 1);
  }
  void expect(std::string_view whole) {
    if (next() != whole) refuse("expected \"" + std::string(whole) + "\"");
  }
  template <class T>
  void read(std::string_view word, T& value) {
    if (!backends::read_value(after(word), value)) refuse("expected " + backends::expected(value));
  }
  [[nodiscard]] bool at(std::string_view word) const { return rest_.starts_with(word); }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  [[noreturn]] void refuse(const std::string& why) const {
    samebits::refuse(call_, ": line ", number_, ": ", why);
  }

 private:
  std::string_view next() {
    ++number_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) refuse("the text ends too early");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  std::string_view call_;
  std::string_view rest_;
  int number_ = 0;
};

/// The text of loss_scaler::save() for a scaler that has one unnamed optimizer.
std::string loss_scaler_text(const scaling_settings& settings, const scaling_state& state,
                             std::uint64_t updates, std::uint64_t applied_steps);

}  // namespace samebits::backends
