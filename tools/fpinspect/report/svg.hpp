// A picture as SVG: shapes with classes, whose colours are in a style sheet.
#pragma once

#include "fpinspect/common.hpp"

namespace fpinspect {

/// Text for HTML and XML, between tags or in a quoted attribute. Invalid UTF-8 and control
/// characters become U+FFFD.
std::string markup_text(std::string_view text);

/// A coordinate with at most one digit after the point.
std::string coordinate(double x);

/// ` NAME="NUMBER"`
inline std::string attribute(std::string_view name, double number) {
  return cat(" ", name, "=\"", coordinate(number), "\"");
}

/// A linear axis of a picture: `first` is at the coordinate `start`, `last` at `end`.
struct picture_axis {
  double first, last;
  double start, end;

  [[nodiscard]] double operator()(double value) const {
    return start + (value - first) / (last - first) * (end - start);
  }
};

/// A picture of fixed size in its own units, which pages scale.
class svg_picture {
 public:
  /// @param title  what the picture shows
  /// @param description  what a reader who cannot see the picture should know
  svg_picture(double width, double height, std::string title, std::string description);

  /// The picture's horizontal line at y, and its label on the left.
  void tick_on_left(std::string_view css_class, double left, double right, double y,
                    std::string_view label) {
    line(css_class, left, y, right, y);
    text("end", left - 6, y + 4, label);
  }
  /// A mark below an axis at the height y, and its label.
  void tick_below(double x, double y, std::string_view label) {
    line("axis", x, y, x, y + 4);
    text("middle", x, y + 16, label);
  }
  void rect(std::string_view css_class, double x, double y, double width, double height);
  void line(std::string_view css_class, double x1, double y1, double x2, double y2) {
    path(css_class, "M", coordinate(x1), " ", coordinate(y1), "L", coordinate(x2), " ",
         coordinate(y2));
  }
  /// @param data  the attribute `d`
  template <class... Parts>
  void path(std::string_view css_class, const Parts&... data) {
    shapes_ += cat("<path class=\"", css_class, "\" d=\"", data..., "\"/>");
  }
  /// @param css_class  "start", "middle" or "end" says where x is
  template <class... Parts>
  void text(std::string_view css_class, double x, double y, const Parts&... words) {
    shapes_ += cat("<text class=\"", css_class, "\"", attribute("x", x), attribute("y", y), ">",
                   markup_text(cat(words...)), "</text>");
  }
  /// Shapes until end_group() are in units of `scale`, from (x, y).
  void begin_group(double x, double y, double scale) {
    shapes_ += cat("<g transform=\"translate(", coordinate(x), " ", coordinate(y), ")scale(",
                   general(scale, 6), ")\">");
  }
  void end_group() { shapes_ += "</g>"; }

  /// An element for a page that has picture_style().
  [[nodiscard]] std::string element() const {
    return cat(tag(" class=\"picture\""), shapes_, "</svg>\n");
  }
  /// A file of its own.
  [[nodiscard]] std::string document() const;

 private:
  [[nodiscard]] std::string tag(std::string_view more) const;

  double width_;
  double height_;
  std::string title_;
  std::string description_;
  std::string shapes_;
};

/// The start of an HTML page that takes nothing from outside: up to its body, with the colours and
/// fonts of pictures, light and dark.
/// @param style  of the page
/// @param more_scripts  sources of scripts that run, besides those in the page
std::string page_start(std::string_view title, std::string_view style,
                       std::string_view more_scripts = "");

}  // namespace fpinspect
