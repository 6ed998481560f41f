// Escapes text from unknown sources for one line of a message: implementation.

#include "tensor_file/common.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file {
namespace {

// Unicode 15: excludes C0 and C1 controls, and format characters that break or reorder a line.
bool is_printable(std::uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c <= 0x9f)) return false;
  const bool line_break = c == 0x2028 || c == 0x2029;
  const bool direction = c == 0x061c || c == 0x200e || c == 0x200f ||
                         (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  const bool byte_order_mark = c == 0xfeff;
  return !line_break && !direction && !byte_order_mark;
}

void append_hex(std::string& out, std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
}

// Escapes text. Characters in `marked` get a backslash.
std::string escape_but(std::string_view text, std::size_t limit, std::string_view marked) {
  std::string out;
  std::string escaped;
  for (std::size_t at = 0; at < text.size();) {
    const utf8_character c = decode_utf8(text, at);
    const std::string_view source = text.substr(at, c.length == 0 ? 1 : c.length);
    escaped.clear();
    if (c.length == 0 || !is_printable(c.value)) {
      append_hex(escaped, source);
    } else {
      if (source.size() == 1 && marked.find(source[0]) != std::string_view::npos) escaped += '\\';
      escaped += source;
    }
    if (out.size() + escaped.size() > limit) return out + "...";
    out += escaped;
    at += source.size();
  }
  return out;
}

}  // namespace

std::string escape(std::string_view text, std::size_t limit) {
  return escape_but(text, limit, "\"\\");
}

std::string escape_message(std::string_view text, std::size_t limit) {
  return escape_but(text, limit, {});
}

std::string quote(std::string_view text) { return '"' + escape(text) + '"'; }

std::string escape_path(const std::filesystem::path& path) {
  constexpr std::size_t limit = 4096;  // PATH_MAX
  return escape(path.native(), limit);
}

}  // namespace samebits::tensor_file
