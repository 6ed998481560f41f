// .safetensors files: the header parser.
#include "tensor_file/safetensors/safetensors.hpp"

#include <nlohmann/json.hpp>

#include "tensor_file/files/file_cursor.hpp"
#include "tensor_file/tensor_size.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file {
namespace {

// --- The JSON of the header: a state machine over SAX events ---------------------------------------
//
// Builds nothing that the format does not contain: the first unexpected event ends the parse.
// Nesting is therefore never deeper than the three levels of the format.

// One tensor object.
struct safetensors_entry {
  std::string name;
  dtype type = dtype::u8;
  std::vector<std::uint64_t> shape;
  std::array<std::uint64_t, 2> data_offsets{};
};

// The contents of a header, not yet checked against the file.
struct safetensors_json {
  std::vector<safetensors_entry> entries;                     // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;  // sorted by key
};

using nlohmann::json;

constexpr std::size_t header_offset = 8;
constexpr std::string_view metadata_key = "__metadata__";

// The parser's state: what it has entered, or what must come next.
enum class state : std::uint8_t {
  start,
  header,
  tensor,
  tensor_fields,
  type,
  shape,
  shape_items,
  offsets,
  offsets_items,
  metadata,
  metadata_fields,
  metadata_text,
  done,
};

// Bit mask of the fields of a tensor object that have been read.
enum field : unsigned { dtype_field = 1, shape_field = 2, offsets_field = 4, all_fields = 7 };

class header_handler {
 public:
  header_handler(safetensors_json& out, const safetensors_limits& limits)
      : out_(out), limits_(limits) {}

  // The callbacks of nlohmann's SAX interface. They throw instead of returning false.
  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("a boolean"); }
  bool number_integer(json::number_integer_t) { unexpected("a negative number"); }
  bool number_float(json::number_float_t, const std::string& text) {
    unexpected("the number " + quote(text));
  }
  bool binary(json::binary_t&) { unexpected("bytes"); }
  bool number_unsigned(json::number_unsigned_t value) {
    if (state_ == state::shape_items) {
      std::vector<std::uint64_t>& shape = out_.entries.back().shape;
      if (shape.size() == max_rank) malformed(where(), "shape has more than 64 dimensions");
      shape.push_back(value);
    } else if (state_ == state::offsets_items && offsets_ < 2) {
      out_.entries.back().data_offsets[offsets_++] = value;
    } else {
      unexpected(cat("the number ", value));
    }
    return true;
  }
  bool string(const std::string& text) {
    if (state_ == state::metadata_text) {
      out_.metadata.back().second = text;
      state_ = state::metadata_fields;
      return true;
    }
    if (state_ != state::type) unexpected("the string " + quote(text));
    const std::optional<dtype> type = find_safetensors_dtype(text);
    if (!type) unsupported(where(), "unknown dtype ", quote(text));
    out_.entries.back().type = *type;
    state_ = state::tensor_fields;
    return true;
  }
  bool key(const std::string& text) {
    if (state_ == state::tensor_fields) {
      enter_field(text);
    } else if (state_ == state::metadata_fields) {
      malformed_if(out_.metadata.size() == limits_.metadata, "__metadata__: more than ",
                   limits_.metadata, " entries");
      out_.metadata.emplace_back(text, std::string());
      state_ = state::metadata_text;
    } else if (text == metadata_key) {
      if (metadata_seen_) malformed("header: the key __metadata__ occurs twice");
      metadata_seen_ = true;
      state_ = state::metadata;
    } else {
      enter_tensor(text);
    }
    return true;
  }
  bool start_object(std::size_t) {
    switch (state_) {
      case state::start: state_ = state::header; return true;
      case state::tensor: state_ = state::tensor_fields; return true;
      case state::metadata: state_ = state::metadata_fields; return true;
      default: unexpected("an object");
    }
  }
  bool end_object() {
    if (state_ == state::tensor_fields && fields_ != all_fields) {
      const char* missing = (fields_ & dtype_field) == 0   ? "dtype"
                            : (fields_ & shape_field) == 0 ? "shape"
                                                           : "data_offsets";
      malformed(where(), "the field ", missing, " is missing");
    }
    state_ = state_ == state::header ? state::done : state::header;
    return true;
  }
  bool start_array(std::size_t) {
    switch (state_) {
      case state::shape: state_ = state::shape_items; return true;
      case state::offsets: state_ = state::offsets_items; return true;
      default: unexpected("an array");
    }
  }
  bool end_array() {
    if (state_ == state::offsets_items && offsets_ != 2) {
      unexpected(cat(offsets_, " of them"));
    }
    state_ = state::tensor_fields;
    return true;
  }
  // `position` counts the characters read, including the invalid one.
  static bool parse_error(std::size_t position, const std::string& token, const json::exception&) {
    const std::size_t at = header_offset + (position == 0 ? 0 : position - 1);
    constexpr std::size_t telling = 40;  // bytes; a longer token would be cut before the error
    const bool shown = !token.empty() && token.size() <= telling;
    malformed("byte ", at, ": the header is not JSON",
              (shown ? " (after " + quote(token) + ")" : std::string()));
  }

 private:
  [[nodiscard]] std::string where() const {
    switch (state_) {
      case state::start:
      case state::header:
      case state::done: return "header: ";
      case state::metadata:
      case state::metadata_fields: return "__metadata__: ";
      case state::metadata_text: return "__metadata__ " + quote(out_.metadata.back().first) + ": ";
      default: return "tensor " + quote(out_.entries.back().name) + ": ";
    }
  }

  [[nodiscard]] const char* wanted() const {
    switch (state_) {
      case state::tensor: return "an object with dtype, shape and data_offsets";
      case state::type: return "dtype as a string";
      case state::shape:
      case state::shape_items: return "shape as an array of integers from 0 to 2^64 - 1";
      case state::offsets:
      case state::offsets_items:
        return "data_offsets as an array of two integers from 0 to 2^64 - 1";
      case state::metadata: return "an object of strings";
      case state::metadata_text: return "a string";
      default: return "an object";
    }
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    malformed(where(), "expected ", wanted(), ", found ", found);
  }

  void enter_tensor(const std::string& name) {
    malformed_if(name.size() > limits_.name_bytes, "header: the name ", quoted{name},
                 " has more than ", limits_.name_bytes, " bytes");
    malformed_if(out_.entries.size() == limits_.tensors, "header: more than ", limits_.tensors,
                 " tensors");
    out_.entries.emplace_back().name = name;
    fields_ = 0;
    offsets_ = 0;
    state_ = state::tensor;
  }

  void enter_field(const std::string& name) {
    unsigned seen = 0;
    if (name == "dtype") {
      seen = dtype_field;
      state_ = state::type;
    } else if (name == "shape") {
      seen = shape_field;
      state_ = state::shape;
    } else if (name == "data_offsets") {
      seen = offsets_field;
      state_ = state::offsets;
    } else {
      malformed(where(), "unknown field ", quote(name));
    }
    if ((fields_ & seen) != 0) malformed(where(), "the field ", name, " occurs twice");
    fields_ |= seen;
  }

  safetensors_json& out_;
  const safetensors_limits& limits_;
  state state_ = state::start;
  unsigned fields_ = 0;      // fields of the current tensor
  std::size_t offsets_ = 0;  // numbers read in data_offsets
  bool metadata_seen_ = false;
};

// Parses the header text, which starts at byte 8 of the file. No object may repeat a key.
safetensors_json parse_safetensors_json(std::string_view header, const safetensors_limits& limits) {
  safetensors_json out;
  header_handler handler(out, limits);
  json::sax_parse(header.begin(), header.end(), &handler);
  if (const auto name = find_repeated(out.entries, &safetensors_entry::name)) {
    malformed("header: the tensor ", quote(*name), " occurs twice");
  }
  if (const auto key = find_repeated(out.metadata, &std::pair<std::string, std::string>::first)) {
    malformed("__metadata__: the key ", quote(*key), " occurs twice");
  }
  std::sort(out.metadata.begin(), out.metadata.end());
  return out;
}

// --- The header against the file ------------------------------------------------------------------

constexpr std::uint64_t length_bytes = 8;

// The header, with its length checked, including the spaces that pad it.
std::string_view find_header(std::span<const std::byte> file, const safetensors_limits& limits) {
  malformed_if(file.size() < length_bytes, "byte 0: the file has ", file.size(),
               " bytes; a .safetensors file begins with 8 bytes of header length");
  const auto length = little_endian<std::uint64_t>(file, 0);
  malformed_if(length > limits.header_bytes, "byte 0: a header of ", length, " bytes; at most ",
               limits.header_bytes, " are read");
  malformed_if(length > file.size() - length_bytes, "byte 0: a header of ", length,
               " bytes, but the file has only ", file.size() - length_bytes, " more");
  return text_of(file).substr(length_bytes, length);
}

// Returns the JSON object without the spaces after it. This check is stricter than the JSON parser.
// The parser would accept a byte order mark before the object, other white space after it, and any
// text after a zero byte.
std::string_view require_object(std::string_view header) {
  if (!header.starts_with('{')) malformed("byte 8: the header must begin with '{'");
  const std::size_t invalid = find_invalid_utf8(header);
  malformed_if(invalid != std::string_view::npos, "byte ", length_bytes + invalid,
               ": the header is not UTF-8");
  const std::size_t zero = header.find('\0');
  malformed_if(zero != std::string_view::npos, "byte ", length_bytes + zero,
               ": the header is not JSON: it holds a zero byte");
  const std::size_t last = header.find_last_not_of(' ');
  if (header[last] != '}') {
    malformed("byte ", length_bytes + last, ": the header must end in '}' and spaces");
  }
  return header.substr(0, last + 1);
}

// Checks one entry alone. Its offset still counts from the start of the data.
tensor_info checked(safetensors_entry&& entry) {
  const std::uint64_t begin = entry.data_offsets[0];
  const std::uint64_t end = entry.data_offsets[1];
  tensor_info info = {.name = std::move(entry.name),
                      .type = entry.type,
                      .shape = std::move(entry.shape),
                      .offset = begin};
  in_context("tensor " + quote(info.name), [&] {
    set_size(info);
    if (end < begin) malformed("data_offsets end at ", end, ", before they begin at ", begin);
    if (end - begin == info.bytes) return;
    malformed("data_offsets span ", end - begin, " bytes where shape and dtype need ", info.bytes);
  });
  return info;
}

// Requires that the tensors, sorted by offset, cover [0, data_bytes) without gap or overlap.
void require_tiling(const std::vector<tensor_info>& tensors, std::uint64_t data_bytes) {
  std::uint64_t expected = 0;
  for (const tensor_info& info : tensors) {
    malformed_if(info.offset != expected, "tensor ", quoted{info.name}, ": its data begins at ",
                 info.offset, ", which leaves a hole or overlaps: expected ", expected);
    expected += info.bytes;
  }
  malformed_if(expected != data_bytes, "the tensors end at byte ", expected,
               " of the data, but the file has ", data_bytes);
}

}  // namespace

file_contents parse_safetensors(std::span<const std::byte> file, const safetensors_limits& limits) {
  const std::string_view header = find_header(file, limits);
  safetensors_json json = parse_safetensors_json(require_object(header), limits);
  file_contents result;
  result.metadata = std::move(json.metadata);
  result.tensors.reserve(json.entries.size());
  for (safetensors_entry& entry : json.entries) result.tensors.push_back(checked(std::move(entry)));

  // Empty tensors share their offset with the next tensor and are sorted before it.
  std::stable_sort(result.tensors.begin(), result.tensors.end(),
                   [](const tensor_info& a, const tensor_info& b) {
                     return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
                   });
  const std::uint64_t data_start = length_bytes + header.size();
  require_tiling(result.tensors, file.size() - data_start);
  for (tensor_info& info : result.tensors) info.offset += data_start;
  return result;
}

}  // namespace samebits::tensor_file
