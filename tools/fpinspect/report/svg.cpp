// A picture as SVG: implementation.
#include "fpinspect/report/svg.hpp"

#include "tensor_file/utf8.hpp"

namespace fpinspect {
namespace {

constexpr std::string_view style =
#include "fpinspect/report/picture_style.inc"
    ;

}  // namespace

std::string markup_text(std::string_view text) {
  constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto character = tensor_file::decode_utf8(text, at);
    const bool control =
        character.value < 0x20 || (character.value >= 0x7f && character.value < 0xa0);
    const std::size_t length = character.length == 0 ? 1 : character.length;
    if (character.length == 0 || control) {
      result += replacement;
    } else if (character.value == '&') {
      result += "&amp;";
    } else if (character.value == '<') {
      result += "&lt;";
    } else if (character.value == '>') {
      result += "&gt;";
    } else if (character.value == '"') {
      result += "&quot;";
    } else if (character.value == '\'') {
      result += "&#39;";
    } else {
      result += text.substr(at, length);
    }
    at += length;
  }
  return result;
}

std::string coordinate(double x) {
  const double tenths = std::round(x * 10.0);
  std::string text = shortest(tenths / 10.0);
  return text == "-0" ? "0" : text;
}

svg_picture::svg_picture(double width, double height, std::string title, std::string description)
    : width_(width),
      height_(height),
      title_(std::move(title)),
      description_(std::move(description)) {}

void svg_picture::rect(std::string_view css_class, double x, double y, double width,
                       double height) {
  shapes_ += cat("<rect class=\"", css_class, "\"", attribute("x", x), attribute("y", y),
                 attribute("width", width), attribute("height", height), "/>");
}

std::string svg_picture::tag(std::string_view more) const {
  return cat("<svg", more, " viewBox=\"0 0 ", coordinate(width_), " ", coordinate(height_),
             R"(" role="img" aria-label=")", markup_text(cat(title_, ". ", description_)), "\">");
}

std::string svg_picture::document() const {
  const std::string more = cat(R"( xmlns="http://www.w3.org/2000/svg" class="picture")",
                               attribute("width", 2 * width_), attribute("height", 2 * height_));
  return cat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", tag(more), "<title>",
             markup_text(title_), "</title><desc>", markup_text(description_), "</desc><style>",
             style, "</style>", R"(<rect class="paper" width="100%" height="100%"/>)", shapes_,
             "</svg>\n");
}

std::string page_start(std::string_view title, std::string_view page_style,
                       std::string_view more_scripts) {
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'",
      more_scripts, "\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      markup_text(title), "</title>\n<style>", style, page_style, "</style></head>\n<body>\n");
}

}  // namespace fpinspect
