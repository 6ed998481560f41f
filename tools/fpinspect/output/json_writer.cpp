// JSON writer: implementation.
#include "fpinspect/output/json_writer.hpp"

#include <bit>
#include <cmath>
#include <cstddef>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "tensor_file/utf8.hpp"

namespace fpinspect {
namespace {

/// Appends one character, escaped by RFC 8259, section 7.
void append_character(std::string& out, std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first == '"' || first == '\\') {
    out += '\\';
    out += bytes;
  } else if (first < 0x20 || first == 0x7f) {
    out += "\\u00";
    out += digits[first >> 4];
    out += digits[first & 15];
  } else {
    out += bytes;
  }
}

}  // namespace

void json_writer::break_line() {
  text_ += '\n';
  text_.append(2 * levels_.size(), ' ');
}

void json_writer::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  level& now = levels_.back();
  const bool first = now.empty;
  now.empty = false;
  if (!first) text_ += ',';
  if (now.how == layout::lines) {
    break_line();
  } else if (!first) {
    text_ += ' ';
  }
}

void json_writer::begin(char bracket, layout how) {
  separate();
  text_ += bracket;
  const bool inside_line = !levels_.empty() && levels_.back().how == layout::one_line;
  levels_.push_back({inside_line ? layout::one_line : how});
}

void json_writer::end(char bracket) {
  const level closed = levels_.back();
  levels_.pop_back();
  if (closed.how == layout::lines && !closed.empty) break_line();
  text_ += bracket;
}

void json_writer::key(std::string_view name) {
  value(name);
  text_ += ": ";
  last_key_ = name;
  after_key_ = true;
}

void json_writer::scalar(std::string_view text) {
  separate();
  text_ += text;
}

void json_writer::value(std::string_view text) {
  separate();
  text_ += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = samebits::tensor_file::decode_utf8(text, at).length;
    if (length == 0) {
      text_ += "\xef\xbf\xbd";  // U+FFFD
      ++at;
    } else {
      append_character(text_, text.substr(at, length));
      at += length;
    }
  }
  text_ += '"';
}

void json_writer::value(double number) {
  this->number(std::isfinite(number) ? shortest(number) : "null",
               std::bit_cast<std::uint64_t>(number));
}

void json_writer::number(std::string_view text, const std::optional<std::uint64_t>& bits) {
  const bool is_member = after_key_;
  scalar(text);
  if (!with_bits_ || !is_member) return;
  const std::string name = last_key_ + "_bits";
  key(name);
  if (bits) {
    value(code_text(samebits::format_id::fp64, *bits));
  } else {
    value(std::nullopt);
  }
}

void json_writer::value(std::span<const std::uint64_t> numbers) {
  begin_array(layout::one_line);
  for (const std::uint64_t number : numbers) value(number);
  end_array();
}

}  // namespace fpinspect
