// What the calls in a PyTorch pickle mean: a table of names. No other name can be called.
#pragma once

#include "tensor_file/torch/objects.hpp"

namespace samebits::tensor_file {

/// The arguments of a call. Every function throws file_error (malformed) if the argument is missing or
/// another kind of object.
class call_arguments {
 public:
  /// @param of  what is called, in messages
  call_arguments(const object_store& objects, object_id tuple, std::string_view of)
      : objects_(objects), of_(of) {
    if (objects[tuple].kind != object_kind::tuple) malformed(of_, ": arguments must be a tuple");
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
    malformed(of_, ": argument ", i, " must be ", what);
  }
  [[nodiscard]] std::uint64_t natural(const object& one, std::size_t i, const char* what) const {
    if (one.kind != object_kind::integer || one.number() < 0) fail(i, what);
    return static_cast<std::uint64_t>(one.number());
  }

  const object_store& objects_;
  std::string of_;
  std::span<const object_id> ids_;
};

/// Adds a name of a module.
object_id add_global(object_store& objects, std::string_view module, std::string_view name);

/// Adds an object of a class that is listed but not read.
object_id add_inert(object_store& objects, std::string_view module, std::string_view name);

/// The object that a call returns.
/// @throws file_error  (unsupported) if the name is not in the table
/// @throws file_error  (malformed) if the arguments are not those of the name
object_id call(object_store& objects, object_id callee, object_id arguments);

/// The object that `callee.__new__(callee, *arguments)` returns: as call(), but a dict is empty.
/// @throws file_error  as call(); (unsupported) for a dict with arguments
object_id make(object_store& objects, object_id callee, object_id arguments);

/// Attributes of an object are skipped.
/// @throws file_error  (malformed) if the object has none; (unsupported) if they replace a tensor's
///   storage
void require_buildable(const object& to, const object& state);

/// The storage, or the class, of a persistent id.
/// @throws file_error  (malformed) if the id breaks a rule
/// @throws file_error  (unsupported) for other classes of storages
object_id add_storage(object_store& objects, object_id persistent_id);

/// Adds the tensor of _rebuild_tensor(storage, offset, size, stride, ...).
/// @param typed_by_argument  whether argument 6 is the dtype (_rebuild_tensor_v3)
/// @throws file_error  (malformed) if the tensor exceeds its storage
/// @throws file_error  (unsupported) for more than 1000000 tensors
object_id rebuild_tensor(object_store& objects, const call_arguments& arguments,
                         bool typed_by_argument);

/// Adds a tensor whose elements are not read.
object_id add_unread_tensor(object_store& objects, const std::string& reason);

}  // namespace samebits::tensor_file
