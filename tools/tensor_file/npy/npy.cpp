// The .npy header parser.
#include "tensor_file/npy/npy.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/npy/npy_literal.hpp"
#include "tensor_file/tensor_size.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file {
namespace {

std::uint64_t byte_at(std::span<const std::byte> file, std::size_t at) {
  return std::to_integer<std::uint64_t>(file[at]);
}

struct npy_header {
  std::string_view text;
  std::size_t offset = 0;  // offset of the text in the file
  int version = 0;         // major version
};

constexpr std::string_view magic = "\x93NUMPY";

// Finds the header behind the magic, version and length.
npy_header find_header(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(magic)) malformed("byte 0: a .npy file begins with \\x93NUMPY");
  if (file.size() < 8) malformed("byte 6: the file ends before the version");
  const std::uint64_t major = byte_at(file, 6);
  const std::uint64_t minor = byte_at(file, 7);
  if (major < 1 || major > 3 || minor != 0) {
    unsupported("byte 6: .npy version " + std::to_string(major) + "." + std::to_string(minor) +
                "; versions 1.0, 2.0 and 3.0 are read");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t offset = 8 + length_bytes;
  if (file.size() < offset) malformed("byte 8: the file ends before the header length");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte_at(file, 8 + i) << (8 * i);
  if (length > max_npy_header_bytes) {
    malformed("byte 8: a header of " + std::to_string(length) + " bytes; at most " +
              std::to_string(max_npy_header_bytes) + " are read");
  }
  if (length > file.size() - offset) {
    malformed("byte 8: a header of " + std::to_string(length) + " bytes, but the file has only " +
              std::to_string(file.size() - offset) + " more");
  }
  return {text.substr(offset, length), offset, static_cast<int>(major)};
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
  if (bad != std::string_view::npos) {
    malformed("byte " + std::to_string(header.offset + bad) + ": the header is not " +
              (ascii ? "ASCII" : "UTF-8"));
  }
  if (!header.text.ends_with('\n')) malformed("the header does not end in a line feed");
}

struct npy_dictionary {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

template <class Value>
void set_once(npy_literal_reader& in, std::optional<Value>& slot, Value value, const char* key) {
  if (slot) in.fail(std::string("the key ") + key + " occurs twice");
  slot = std::move(value);
}

std::string_view read_descr(npy_literal_reader& in) {
  if (in.peek() == '[' || in.peek() == '(') {
    unsupported("descr: structured and sub-array types are not read; save one field at a time");
  }
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
    in.fail("unknown key " + quote(key) + "; a header has descr, fortran_order and shape");
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
  if (!type) unsupported(where + hint_for(code.empty() ? '\0' : code[0]));

  const char mark = marked ? descr[0] : '=';
  const bool single_byte = spec_of(*type).component_bytes == 1;
  if (mark == '=' || (mark == '|' && !single_byte)) {
    malformed(where + "the byte order must be given as < or >");
  }
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
  const tensor_size size = size_of(element.type, *dictionary.shape);

  const std::uint64_t offset = header.offset + header.text.size();
  const std::uint64_t present = file_bytes - offset;
  if (present != size.bytes) {
    malformed("byte " + std::to_string(offset) + ": " + std::to_string(present) +
              " bytes of data where shape and descr need " + std::to_string(size.bytes));
  }
  tensor_info info;
  info.type = element.type;
  info.shape = std::move(*dictionary.shape);
  if (*dictionary.fortran_order) info.strides = fortran_strides(info.shape);
  info.bytes_order = element.order;
  info.offset = offset;
  info.bytes = size.bytes;
  info.count = size.count;
  return info;
}

}  // namespace samebits::tensor_file
