// The JSON header of a .safetensors file: a state machine over SAX events.
//
// Builds nothing that the format does not contain: the first unexpected event ends the parse.
// Nesting is therefore never deeper than the three levels of the format.
#include "tensor_file/safetensors/safetensors_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace samebits::tensor_file {
namespace {

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
  bool number_unsigned(json::number_unsigned_t value);
  bool string(const std::string& text);
  bool key(const std::string& text);
  bool start_object(std::size_t);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  static bool parse_error(std::size_t position, const std::string& token, const json::exception&);

 private:
  [[noreturn]] void unexpected(const std::string& found) const;
  [[nodiscard]] std::string where() const;
  [[nodiscard]] const char* wanted() const;
  void enter_tensor(const std::string& name);
  void enter_field(const std::string& name);

  safetensors_json& out_;
  const safetensors_limits& limits_;
  state state_ = state::start;
  unsigned fields_ = 0;      // fields of the current tensor
  std::size_t offsets_ = 0;  // numbers read in data_offsets
  bool metadata_seen_ = false;
};

std::string header_handler::where() const {
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

const char* header_handler::wanted() const {
  switch (state_) {
    case state::tensor: return "an object with dtype, shape and data_offsets";
    case state::type: return "dtype as a string";
    case state::shape:
    case state::shape_items: return "shape as an array of integers from 0 to 2^64 - 1";
    case state::offsets:
    case state::offsets_items: return "data_offsets as an array of two integers from 0 to 2^64 - 1";
    case state::metadata: return "an object of strings";
    case state::metadata_text: return "a string";
    default: return "an object";
  }
}

void header_handler::unexpected(const std::string& found) const {
  malformed(where() + "expected " + wanted() + ", found " + found);
}

bool header_handler::number_unsigned(json::number_unsigned_t value) {
  if (state_ == state::shape_items) {
    std::vector<std::uint64_t>& shape = out_.entries.back().shape;
    if (shape.size() == max_rank) malformed(where() + "shape has more than 64 dimensions");
    shape.push_back(value);
  } else if (state_ == state::offsets_items && offsets_ < 2) {
    out_.entries.back().data_offsets[offsets_++] = value;
  } else {
    unexpected("the number " + std::to_string(value));
  }
  return true;
}

bool header_handler::string(const std::string& text) {
  if (state_ == state::metadata_text) {
    out_.metadata.back().second = text;
    state_ = state::metadata_fields;
    return true;
  }
  if (state_ != state::type) unexpected("the string " + quote(text));
  const std::optional<dtype> type = find_safetensors_dtype(text);
  if (!type) unsupported(where() + "unknown dtype " + quote(text));
  out_.entries.back().type = *type;
  state_ = state::tensor_fields;
  return true;
}

void header_handler::enter_tensor(const std::string& name) {
  if (name.size() > limits_.name_bytes) {
    malformed("header: the name " + quote(name) + " has more than " +
              std::to_string(limits_.name_bytes) + " bytes");
  }
  if (out_.entries.size() == limits_.tensors) {
    malformed("header: more than " + std::to_string(limits_.tensors) + " tensors");
  }
  out_.entries.emplace_back().name = name;
  fields_ = 0;
  offsets_ = 0;
  state_ = state::tensor;
}

void header_handler::enter_field(const std::string& name) {
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
    malformed(where() + "unknown field " + quote(name));
  }
  if ((fields_ & seen) != 0) malformed(where() + "the field " + name + " occurs twice");
  fields_ |= seen;
}

bool header_handler::key(const std::string& text) {
  if (state_ == state::tensor_fields) {
    enter_field(text);
  } else if (state_ == state::metadata_fields) {
    if (out_.metadata.size() == limits_.metadata) {
      malformed("__metadata__: more than " + std::to_string(limits_.metadata) + " entries");
    }
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

bool header_handler::start_object(std::size_t) {
  switch (state_) {
    case state::start: state_ = state::header; return true;
    case state::tensor: state_ = state::tensor_fields; return true;
    case state::metadata: state_ = state::metadata_fields; return true;
    default: unexpected("an object");
  }
}

bool header_handler::end_object() {
  if (state_ == state::tensor_fields && fields_ != all_fields) {
    const char* missing = (fields_ & dtype_field) == 0   ? "dtype"
                          : (fields_ & shape_field) == 0 ? "shape"
                                                         : "data_offsets";
    malformed(where() + "the field " + missing + " is missing");
  }
  state_ = state_ == state::header ? state::done : state::header;
  return true;
}

bool header_handler::start_array(std::size_t) {
  switch (state_) {
    case state::shape: state_ = state::shape_items; return true;
    case state::offsets: state_ = state::offsets_items; return true;
    default: unexpected("an array");
  }
}

bool header_handler::end_array() {
  if (state_ == state::offsets_items && offsets_ != 2) {
    unexpected(std::to_string(offsets_) + " of them");
  }
  state_ = state::tensor_fields;
  return true;
}

// `position` counts the characters read, including the invalid one.
bool header_handler::parse_error(std::size_t position, const std::string& token,
                                 const json::exception&) {
  const std::size_t at = header_offset + (position == 0 ? 0 : position - 1);
  constexpr std::size_t telling = 40;  // bytes; a longer token would be cut before the error
  const bool shown = !token.empty() && token.size() <= telling;
  malformed("byte " + std::to_string(at) + ": the header is not JSON" +
            (shown ? " (after " + quote(token) + ")" : std::string()));
}

template <class Item, class NameOf>
void require_distinct(std::vector<Item>& items, NameOf name_of, const char* what) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const Item& item : items) names.push_back(name_of(item));
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) malformed(what + quote(*twice) + " occurs twice");
}

}  // namespace

safetensors_json parse_safetensors_json(std::string_view header, const safetensors_limits& limits) {
  safetensors_json out;
  header_handler handler(out, limits);
  json::sax_parse(header.begin(), header.end(), &handler);
  require_distinct(
      out.entries, [](const auto& entry) { return std::string_view{entry.name}; },
      "header: the tensor ");
  require_distinct(
      out.metadata, [](const auto& entry) { return std::string_view{entry.first}; },
      "__metadata__: the key ");
  std::sort(out.metadata.begin(), out.metadata.end());
  return out;
}

}  // namespace samebits::tensor_file
