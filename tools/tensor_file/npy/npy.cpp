// The .npy header parser.
#include "tensor_file/npy/npy.hpp"

#include "tensor_file/files/file_cursor.hpp"
#include "tensor_file/tensor_size.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file {
namespace {

// --- The values in a header: a small subset of Python's literals ---------------------------------

// The white space that Python skips between tokens inside brackets.
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads the header text from left to right. Every function skips white space first. If the text is
// not what the function expects, it throws file_error (malformed), which names the byte of the
// file.
class npy_literal_reader {
 public:
  /// @param text_offset  position of the text in the file, for messages
  /// @param version  major version; versions 1 and 2 may come from Python 2, which wrote 3L for a
  ///   long
  npy_literal_reader(std::string_view text, std::uint64_t text_offset, int version)
      : text_(text), text_offset_(text_offset), version_(version) {}

  /// The next character after white space, or '\0' at the end. Consumes white space only.
  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  /// Consumes the character if it is the next one.
  bool accept(char wanted) {
    if (peek() != wanted || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char wanted, const char* where) {
    if (!accept(wanted)) fail("expected '", wanted, "' ", where);
  }
  void expect_end() {
    peek();
    if (at_ < text_.size()) fail("only spaces may follow the dictionary");
  }

  /// 'text' or "text", without escapes.
  std::string_view read_string(const char* what) {
    const char mark = peek();
    if (mark != '\'' && mark != '"') fail("expected ", what, " in quotes");
    const std::size_t start = ++at_;
    const auto inside = [&](char c) { return c != mark && c != '\\' && c != '\n'; };
    while (at_ < text_.size() && inside(text_[at_])) ++at_;
    if (at_ == text_.size() || text_[at_] != mark) {
      fail("a string holds an escape or a line break, or does not end");
    }
    return text_.substr(start, at_++ - start);
  }
  /// True or False.
  bool read_bool(const char* what) {
    peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail(what, " must be True or False");
  }
  /// (), (3,), (3, 4) or (3, 4,).
  std::vector<std::uint64_t> read_tuple() {
    if (!accept('(')) fail("shape must be a tuple");
    std::vector<std::uint64_t> shape;
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("expected ',' or ')' in shape");
      if (shape.size() == max_rank) fail("shape has more than 64 dimensions");
      shape.push_back(read_extent());
      comma = accept(',');
    }
    if (shape.size() == 1 && !comma) fail("shape must be a tuple: (3) is a number, (3,) is one");
    return shape;
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... message) const {
    malformed("byte ", text_offset_ + at_, ": ", message...);
  }

 private:
  std::uint64_t read_extent() {
    if (peek() == '-') fail("shape holds a negative number");
    if (!is_digit(peek())) fail("shape must be a tuple of integers");
    const std::size_t start = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
          __builtin_add_overflow(value, digit, &value)) {
        fail("shape holds a number that exceeds 64 bits");
      }
    }
    const std::size_t digits = at_ - start;
    if (digits > 1 && text_[start] == '0') fail("shape holds a number with a leading zero");
    if (version_ < 3 && at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  std::string_view text_;
  std::uint64_t text_offset_;
  int version_;
  std::size_t at_ = 0;
};

// --- The header ----------------------------------------------------------------------------------

struct npy_header {
  std::string_view text;
  std::size_t offset = 0;  // offset of the text in the file
  int version = 0;         // major version
};

constexpr std::string_view npy_magic = "\x93NUMPY";

// Finds the header behind the magic, version and length.
npy_header find_header(std::span<const std::byte> file) {
  const std::string_view text = text_of(file);
  if (!text.starts_with(npy_magic)) malformed("byte 0: a .npy file begins with \\x93NUMPY");
  if (file.size() < 8) malformed("byte 6: the file ends before the version");
  const auto major = little_endian<std::uint8_t>(file, 6);
  const auto minor = little_endian<std::uint8_t>(file, 7);
  unsupported_if(major < 1 || major > 3 || minor != 0, "byte 6: .npy version ", major, ".", minor,
                 "; versions 1.0, 2.0 and 3.0 are read");
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t offset = 8 + length_bytes;
  if (file.size() < offset) malformed("byte 8: the file ends before the header length");
  const std::uint64_t length =
      major == 1 ? little_endian<std::uint16_t>(file, 8) : little_endian<std::uint32_t>(file, 8);
  malformed_if(length > max_npy_header_bytes, "byte 8: a header of ", length, " bytes; at most ",
               max_npy_header_bytes, " are read");
  malformed_if(length > file.size() - offset, "byte 8: a header of ", length,
               " bytes, but the file has only ", file.size() - offset, " more");
  return {text.substr(offset, length), offset, major};
}

std::size_t find_non_ascii(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) >= 0x80) return i;
  }
  return std::string_view::npos;
}

void require_text(const npy_header& header) {
  const bool ascii = header.version < 3;
  const std::size_t bad = ascii ? find_non_ascii(header.text) : find_invalid_utf8(header.text);
  malformed_if(bad != std::string_view::npos, "byte ", header.offset + bad, ": the header is not ",
               (ascii ? "ASCII" : "UTF-8"));
  if (!header.text.ends_with('\n')) malformed("the header does not end in a line feed");
}

struct npy_dictionary {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

template <class Value>
void set_once(npy_literal_reader& in, std::optional<Value>& slot, Value value, const char* key) {
  if (slot) in.fail("the key ", key, " occurs twice");
  slot = std::move(value);
}

std::string_view read_descr(npy_literal_reader& in) {
  unsupported_if(in.peek() == '[' || in.peek() == '(',
                 "descr: structured and sub-array types are not read; save one field at a time");
  return in.read_string("a type");
}

void read_entry(npy_literal_reader& in, npy_dictionary& dictionary) {
  const std::string_view key = in.read_string("a key");
  in.expect(':', "after a key");
  if (key == "descr") {
    set_once(in, dictionary.descr, read_descr(in), "descr");
  } else if (key == "fortran_order") {
    set_once(in, dictionary.fortran_order, in.read_bool("fortran_order"), "fortran_order");
  } else if (key == "shape") {
    set_once(in, dictionary.shape, in.read_tuple(), "shape");
  } else {
    in.fail("unknown key ", quote(key), "; a header has descr, fortran_order and shape");
  }
}

npy_dictionary read_dictionary(const npy_header& header) {
  npy_literal_reader in(header.text, header.offset, header.version);
  npy_dictionary dictionary;
  in.expect('{', "at the start of the header");
  bool comma = true;
  while (!in.accept('}')) {
    if (!comma) in.fail("expected ',' or '}' in the header");
    read_entry(in, dictionary);
    comma = in.accept(',');
  }
  in.expect_end();
  if (!dictionary.descr) malformed("the header lacks the key descr");
  if (!dictionary.fortran_order) malformed("the header lacks the key fortran_order");
  if (!dictionary.shape) malformed("the header lacks the key shape");
  return dictionary;
}

// Why a type string without a dtype is refused, and what to do about it.
std::string hint_for(char kind) {
  switch (kind) {
    case 'O': return "Python objects are pickled and never read; save an array of numbers";
    case 'S':
    case 'a':
    case 'U': return "strings are not read; save an array of numbers";
    case 'V': return "raw bytes have no element type; save array.view('u1'), 'u2' or 'u4' instead";
    case 'M':
    case 'm': return "dates and times are not read; save array.view('i8')";
    default: return "b1, i1 to i8, u1 to u8, f2, f4, f8, c8 and c16 are read";
  }
}

struct npy_type {
  dtype type;
  byte_order order;
};

npy_type parse_descr(std::string_view descr) {
  const std::string where = "descr " + quote(descr) + ": ";
  const std::string_view marks = "<>|=";
  const bool marked = !descr.empty() && marks.find(descr[0]) != std::string_view::npos;
  const std::string_view code = descr.substr(marked ? 1 : 0);
  const std::optional<dtype> type = find_npy_dtype(code);
  if (!type) unsupported(where, hint_for(code.empty() ? '\0' : code[0]));

  const char mark = marked ? descr[0] : '=';
  const bool single_byte = spec_of(*type).component_bytes == 1;
  malformed_if(mark == '=' || (mark == '|' && !single_byte), where,
               "the byte order must be given as < or >");
  // Single bytes have no byte order; `little` is the only spelling of this layout.
  const bool big = mark == '>' && !single_byte;
  return {*type, big ? byte_order::big : byte_order::little};
}

/// The first index runs fastest. Ranks below 2 have one order only.
std::vector<std::uint64_t> fortran_strides(const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> strides;
  if (shape.size() < 2) return strides;
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape) {
    strides.push_back(elements);
    elements *= extent;
  }
  return strides;
}

}  // namespace

tensor_info parse_npy(std::span<const std::byte> file) {
  return parse_npy_start(file, file.size());
}

tensor_info parse_npy_start(std::span<const std::byte> start, std::uint64_t file_bytes) {
  const npy_header header = find_header(start);
  require_text(header);
  npy_dictionary dictionary = read_dictionary(header);
  const npy_type element = parse_descr(*dictionary.descr);
  tensor_info info = {.type = element.type,
                      .shape = std::move(*dictionary.shape),
                      .bytes_order = element.order,
                      .offset = header.offset + header.text.size()};
  if (*dictionary.fortran_order) info.strides = fortran_strides(info.shape);
  set_size(info);
  const std::uint64_t present = file_bytes - info.offset;
  if (present == info.bytes) return info;
  malformed("byte ", info.offset, ": ", present, " bytes of data where shape and descr need ",
            info.bytes);
}

}  // namespace samebits::tensor_file
