// Standard output or standard error, whose failed writes are reported; the capabilities of the
// terminal behind it, and coloured text.
#pragma once

#include "fpinspect/common.hpp"

namespace fpinspect {

/// Collects text and writes it to a file descriptor. Both functions throw output_error, or
/// closed_pipe if the reader has closed the pipe. Text that was not written by then is discarded.
class output {
 public:
  /// @param descriptor  STDOUT_FILENO, or STDERR_FILENO for a report if standard output carries
  ///   data
  explicit output(int descriptor) : descriptor_(descriptor) {}

  void write(std::string_view text);
  template <class First, class... Parts>
  requires(sizeof...(Parts) > 0) void write(const First& first, const Parts&... parts) {
    write(cat(first, parts...));
  }
  void flush();

 private:
  int descriptor_;
  std::string waiting_;
};

enum class charset : std::uint8_t { unicode, ascii };
enum class paint : std::uint8_t { heading, good, caution, bad, faint };

/// How results are displayed.
struct view_options {
  bool json = false;
  bool json_bits = false;
  bool ascii = false;
  std::string color = "auto";
};

/// Marks from empty to full, for the last row of a column: blocks in eighths, or ASCII in thirds.
std::span<const std::string_view> level_marks(charset characters);

class terminal {
 public:
  /// "auto" uses colour on a terminal that is not TERM=dumb, unless NO_COLOR is set and not empty.
  /// The width is the terminal's, else COLUMNS, else 80; limited to 40 .. 200.
  /// @throws usage_error  if options.color is not auto, always or never
  explicit terminal(const view_options& options);

  [[nodiscard]] charset characters() const { return characters_; }
  [[nodiscard]] int width() const { return width_; }
  /// The text, between the escape sequences of a colour if colour is used.
  [[nodiscard]] std::string painted(paint how, std::string_view text) const;
  template <class First, class... Parts>
  requires(sizeof...(Parts) > 0) [[nodiscard]] std::string
      painted(paint how, const First& first, const Parts&... parts) const {
    return painted(how, cat(first, parts...));
  }

 private:
  charset characters_;
  bool color_;
  int width_;
};

}  // namespace fpinspect
