// The index of a model in several .safetensors files: a state machine over SAX events.
#include "tensor_file/safetensors/shard_index.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/files/mapped_file.hpp"

namespace samebits::tensor_file {
namespace {

[[noreturn]] void malformed_index(const std::string& message) { malformed("index: " + message); }

/// Keeps the strings of weight_map and skips everything else.
class index_handler {
 public:
  // The callbacks of nlohmann's SAX interface. They throw instead of returning false.
  bool null() { return other(); }
  bool boolean(bool) { return other(); }
  bool number_integer(nlohmann::json::number_integer_t) { return other(); }
  bool number_unsigned(nlohmann::json::number_unsigned_t) { return other(); }
  bool number_float(nlohmann::json::number_float_t, const std::string&) { return other(); }
  bool binary(nlohmann::json::binary_t&) { return other(); }
  bool string(const std::string& text) {
    if (!in_map()) return other();
    const bool plain = !text.empty() && text != "." && text != ".." &&
                       text.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    if (!plain) malformed_index("weight_map: " + quote(text) + " is not the name of a file");
    files_[key_] = text;
    return true;
  }
  bool key(const std::string& text) {
    if (!keys_.back().insert(text).second) malformed_index(quote(text) + " occurs twice");
    if (depth_ == 1) map_is_next_ = text == "weight_map";
    key_ = text;
    return true;
  }
  bool start_object(std::size_t) {
    keys_.emplace_back();
    if (depth_ == 1 && map_is_next_) {
      map_is_next_ = false;
      seen_ = inside_ = true;
      return enter();
    }
    if (depth_ != 0) static_cast<void>(other());
    return enter();
  }
  bool end_object() {
    keys_.pop_back();
    return leave();
  }
  bool start_array(std::size_t) {
    static_cast<void>(other());
    return enter();
  }
  bool end_array() { return leave(); }
  static bool parse_error(std::size_t position, const std::string&,
                          const nlohmann::json::exception&) {
    malformed_index("not JSON at byte " + std::to_string(position));
  }

  [[nodiscard]] const shard_map& files() const {
    if (!seen_) malformed_index("there is no weight_map");
    return files_;
  }

 private:
  [[nodiscard]] bool in_map() const { return inside_ && depth_ == 2; }

  /// A value that is neither the map nor a string in it.
  [[nodiscard]] bool other() const {
    if (depth_ == 0) malformed_index("expected an object");
    if (in_map()) malformed_index("weight_map: expected strings");
    if (depth_ == 1 && map_is_next_) malformed_index("weight_map: expected an object");
    return true;
  }
  bool enter() {
    constexpr std::size_t deepest = 64;
    if (++depth_ > deepest) malformed_index("nested too deeply");
    return true;
  }
  bool leave() {
    if (--depth_ == 1) inside_ = false;
    return true;
  }

  shard_map files_;
  std::vector<std::set<std::string>> keys_;  ///< of the objects around this position
  std::string key_;                          ///< the last one
  std::size_t depth_ = 0;
  bool map_is_next_ = false;  ///< the last key of the outermost object was weight_map
  bool inside_ = false;       ///< in weight_map
  bool seen_ = false;
};

}  // namespace

bool is_shard_index(const std::filesystem::path& path) {
  return path.filename().string().ends_with(".index.json");
}

shard_map parse_shard_index(std::string_view json) {
  index_handler handler;
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  return handler.files();
}

shard_map read_shard_index(const std::filesystem::path& path) {
  return in_context(escape_path(path), [&] {
    const mapped_file file(path);
    const auto bytes = file.bytes();
    return parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
}

}  // namespace samebits::tensor_file
