// The objects of a PyTorch pickle as plain data. What a pickle names is neither imported nor called.
#pragma once

#include <deque>
#include <map>
#include <variant>

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

enum class object_kind : std::uint8_t {
  none,
  boolean,  ///< an integer, 0 or 1
  integer,  ///< of up to 64 bits
  text,
  bytes,    ///< also integers of more than 64 bits
  dtype,    ///< an element type; the text is its name behind "torch."
  plain,    ///< another value that is no tensor: a number, a device
  tuple,    ///< ids
  list,     ///< ids
  dict,     ///< ids: key, value, key, value, ...
  global,   ///< what a module calls by a name; ids of the two texts
  inert,    ///< an object that is listed but not read; the id of its class
  storage,  ///< an index of object_store::views
  tensor,   ///< an index of object_store::tensors
};

/// An index of object_store.
using object_id = std::uint32_t;

struct object {
  object_kind kind = object_kind::none;
  /// By kind: a number or an index, a text of the pickle, or ids.
  std::variant<std::int64_t, std::string_view, std::vector<object_id>> value = {};

  [[nodiscard]] std::int64_t number() const { return std::get<std::int64_t>(value); }
  [[nodiscard]] std::string_view text() const { return std::get<std::string_view>(value); }
  [[nodiscard]] const std::vector<object_id>& items() const {
    return std::get<std::vector<object_id>>(value);
  }
  [[nodiscard]] std::vector<object_id>& items() { return std::get<std::vector<object_id>>(value); }
};

/// The memory of tensors, a part of the file.
struct torch_storage {
  std::string_view key;           ///< its name in the file
  std::string_view type;          ///< the name of its class
  std::optional<dtype> elements;  ///< nothing: untyped, or of a type that is not read
  std::uint64_t element_bytes = 0;
  std::uint64_t bytes = 0;
  bool has_data = true;
};

/// Bytes of a storage: all, or some of them in old files.
struct storage_view {
  std::uint32_t storage = 0;
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
};

struct torch_tensor {
  tensor_info info;  ///< without a name; the offset counts in the storage
  std::uint32_t storage = 0;
};

/// All objects of a file. Texts are those of the file, which must outlive the object_store.
class object_store {
 public:
  static constexpr object_id none = 0;
  static constexpr object_id no = 1;
  static constexpr object_id yes = 2;

  object_store() {
    objects_.push_back({});
    for (const std::int64_t value : {0, 1}) objects_.push_back({object_kind::boolean, value});
  }

  template <class Value>
  object_id add(object_kind kind, Value value) {
    objects_.push_back({kind, std::move(value)});
    return static_cast<object_id>(objects_.size() - 1);
  }

  [[nodiscard]] object& operator[](object_id id) { return objects_[id]; }
  [[nodiscard]] const object& operator[](object_id id) const { return objects_[id]; }

  std::vector<torch_storage> storages;
  std::map<std::string_view, std::uint32_t> storage_of_key;
  std::vector<storage_view> views;
  std::deque<torch_tensor> tensors;
  std::uint64_t copied_pairs = 0;  ///< pairs that calls copied from lists into dicts
  std::uint64_t extents = 0;       ///< of all tensors' shapes and strides

 private:
  std::deque<object> objects_;
};

/// "torch._utils._rebuild_tensor_v2", escaped for messages.
std::string name_of_global(const object_store& objects, object_id id);

}  // namespace samebits::tensor_file
