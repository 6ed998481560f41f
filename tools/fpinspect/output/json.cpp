// JSON documents: implementation.
#include "fpinspect/output/json.hpp"

#include "fpinspect/formats/describe.hpp"
#include "tensor_file/utf8.hpp"

namespace fpinspect {
namespace {

// An option of the whole program.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
bool with_bits = false;

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

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = tensor_file::decode_utf8(text, at).length;
    if (length == 0) {
      result += "\xef\xbf\xbd";  // U+FFFD
      ++at;
    } else {
      append_character(result, text.substr(at, length));
      at += length;
    }
  }
  return result + '"';
}

}  // namespace

/// Writes values in order.
class json_writer {
 public:
  void write(const json_value& value) { std::visit(*this, value.held_); }

  void operator()(std::monostate) { text += "null"; }
  void operator()(bool on) { text += on ? "true" : "false"; }
  void operator()(std::int64_t number) { text += std::to_string(number); }
  void operator()(std::uint64_t number) { text += std::to_string(number); }
  void operator()(const std::optional<double>& number) {
    text += number && std::isfinite(*number) ? shortest(*number) : "null";
  }
  void operator()(const std::string& string) { text += json_string(string); }
  void operator()(const std::shared_ptr<const json_array>& array) {
    write_all('[', array->one_line_, array->values_, ']',
              [&](const json_value& one) { write(one); });
  }
  void operator()(const std::shared_ptr<const json_object>& object) {
    write_all('{', object->one_line_, object->members_, '}', [&](const json_member& member) {
      text += json_string(member.key) + ": ";
      write(member.value);
      const auto* const number = std::get_if<std::optional<double>>(&member.value.held_);
      if (number == nullptr || !with_bits) return;
      separate();
      text += json_string(member.key + "_bits") + ": ";
      text += *number
                  ? json_string(code_text(format_id::fp64, std::bit_cast<std::uint64_t>(**number)))
                  : "null";
    });
  }

  std::string text;

 private:
  template <class Elements, class Function>
  void write_all(char open, bool one_line, const Elements& elements, char close,
                 const Function& write_one) {
    const bool outer = one_line_;
    one_line_ = one_line_ || one_line;
    text += open;
    ++depth_;
    bool first = true;
    for (const auto& element : elements) {
      if (!first) separate();
      if (first && !one_line_) break_line();
      first = false;
      write_one(element);
    }
    --depth_;
    if (!first && !one_line_) break_line();
    text += close;
    one_line_ = outer;
  }
  void separate() {
    text += ',';
    if (one_line_) {
      text += ' ';
    } else {
      break_line();
    }
  }
  void break_line() {
    text += '\n';
    text.append(2 * depth_, ' ');
  }

  std::size_t depth_ = 0;
  bool one_line_ = false;
};

json_value::json_value(std::span<const std::uint64_t> numbers) : json_value(json_list(numbers)) {}
json_value::json_value(json_object object)
    : held_(std::make_shared<const json_object>(std::move(object))) {}
json_value::json_value(json_array array)
    : held_(std::make_shared<const json_array>(std::move(array))) {}

std::string json_value::text() const {
  if (const auto* const string = std::get_if<std::string>(&held_)) return *string;
  std::string number = json_text(*this);
  number.pop_back();
  return number;
}

std::string json_text(const json_value& document) {
  json_writer writer;
  writer.write(document);
  return writer.text + "\n";
}

void write_json_bits(bool on) { with_bits = on; }

}  // namespace fpinspect
