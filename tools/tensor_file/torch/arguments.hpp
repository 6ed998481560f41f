// The arguments of a call in a PyTorch pickle.
#pragma once

#include "tensor_file/torch/objects.hpp"

namespace samebits::tensor_file {

/// Every function throws file_error (malformed) if the argument is missing or another kind of object.
class call_arguments {
 public:
  /// @param of  what is called, in messages
  call_arguments(const object_store& objects, object_id tuple, std::string_view of)
      : objects_(objects), of_(of) {
    if (objects[tuple].kind != object_kind::tuple)
      malformed(cat(of_, ": arguments must be a tuple"));
    ids_ = objects[tuple].items();
  }

  [[nodiscard]] bool is_empty() const { return ids_.empty(); }
  [[nodiscard]] bool has(std::size_t i) const {
    return i < ids_.size() && objects_[ids_[i]].kind != object_kind::none;
  }
  [[nodiscard]] bool has(std::size_t i, object_kind kind) const {
    return i < ids_.size() && objects_[ids_[i]].kind == kind;
  }
  [[nodiscard]] object_id id(std::size_t i, object_kind kind, const char* what) const {
    if (!has(i, kind)) fail(i, what);
    return ids_[i];
  }
  [[nodiscard]] std::string_view text(std::size_t i) const {
    return objects_[id(i, object_kind::text, "a text")].text();
  }
  [[nodiscard]] std::uint64_t natural(std::size_t i) const {
    constexpr const char* what = "an integer >= 0";
    return natural(objects_[id(i, object_kind::integer, what)], i, what);
  }
  /// A tuple or a list of integers >= 0.
  [[nodiscard]] std::vector<std::uint64_t> naturals(std::size_t i) const {
    constexpr const char* what = "a tuple of at most 64 integers >= 0";
    const bool is_list = has(i, object_kind::list);
    const object_id list = id(i, is_list ? object_kind::list : object_kind::tuple, what);
    const std::vector<object_id>& items = objects_[list].items();
    if (items.size() > max_rank) fail(i, what);
    std::vector<std::uint64_t> values;
    for (const object_id item : items) values.push_back(natural(objects_[item], i, what));
    return values;
  }
  /// The second name of a global, such as "FloatStorage".
  [[nodiscard]] std::string_view global(std::size_t i) const {
    return objects_[objects_[id(i, object_kind::global, "a name of a module")].items()[1]].text();
  }

 private:
  [[noreturn]] void fail(std::size_t i, const char* what) const {
    malformed(cat(of_, ": argument ", i, " must be ", what));
  }
  [[nodiscard]] std::uint64_t natural(const object& one, std::size_t i, const char* what) const {
    if (one.kind != object_kind::integer || one.number() < 0) fail(i, what);
    return static_cast<std::uint64_t>(one.number());
  }

  const object_store& objects_;
  std::string of_;
  std::span<const object_id> ids_;
};

}  // namespace samebits::tensor_file
