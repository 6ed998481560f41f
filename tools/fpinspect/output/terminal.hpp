// What the terminal can show, and text in colour where it can.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fpinspect/cli/options.hpp"

namespace fpinspect {

enum class charset : std::uint8_t { unicode, ascii };
enum class paint : std::uint8_t { heading, good, caution, bad, faint };

class terminal {
 public:
  /// Colour under "auto": on a terminal that is not TERM=dumb, unless NO_COLOR is set and not
  /// empty. Width: of the terminal, else COLUMNS, else 80; between 40 and 200. Throws usage_error
  /// if options.color is not one of auto, always, never.
  explicit terminal(const view_options& options);

  [[nodiscard]] charset characters() const { return characters_; }
  [[nodiscard]] int width() const { return width_; }
  /// The text as it is, or between the escape sequences of a colour.
  [[nodiscard]] std::string painted(paint how, std::string_view text) const;

 private:
  charset characters_;
  bool color_;
  int width_;
};

}  // namespace fpinspect
