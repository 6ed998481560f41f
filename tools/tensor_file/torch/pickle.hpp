// A machine for the operations of pickles that PyTorch's files have. It builds plain data, and
// refuses every other operation.
//
// Source: CPython, Lib/pickletools.py (operations); PyTorch, torch/_weights_only_unpickler.py.
#pragma once

#include "tensor_file/files/file_cursor.hpp"
#include "tensor_file/torch/objects.hpp"

namespace samebits::tensor_file {

/// Most bytes of all pickles of a file.
inline constexpr std::uint64_t max_pickle_bytes = std::uint64_t{1} << 28;

/// Runs the pickles of a file one behind the other.
class pickle_machine {
 public:
  /// @param file  must outlive `objects`
  pickle_machine(std::span<const std::byte> file, object_store& objects)
      : in_(file), objects_(objects) {}

  /// Runs the next pickle; returns its object.
  /// @throws file_error  (malformed, unsupported) the message begins with the operation's byte
  object_id run();

  /// Behind the last pickle.
  [[nodiscard]] std::uint64_t at() const { return in_.at(); }

 private:
  struct operations;

  void push(object_id id);
  object_id pop();
  [[nodiscard]] object_id top() const;
  /// The objects above the last mark, which are removed with it.
  std::vector<object_id> pop_to_mark();

  void push_text(object_kind kind, std::string_view text) { push(objects_.add(kind, text)); }
  void push_integer(std::int64_t value) { push(objects_.add(object_kind::integer, value)); }
  void push_long(std::string_view bytes);
  void push_tuple(std::size_t size);
  /// Adds to the list, or dict, on the stack. Objects that are not read take anything.
  void add_items(object_kind kind, const std::vector<object_id>& items);
  void put(std::uint64_t index);
  void get(std::uint64_t index);
  std::string_view read_line();
  void push_name();
  void push_name_of_texts();
  /// @param make  call() or make()
  void push_result(object_id (*make)(object_store&, object_id, object_id));

  [[nodiscard]] std::string where() const { return cat("byte ", operation_at_); }
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... message) const {
    malformed(where(), ": ", message...);
  }

  file_cursor in_;
  object_store& objects_;
  std::uint64_t operations_ = 0;
  std::uint64_t operation_at_ = 0;
  std::vector<object_id> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::vector<object_id> memo_;
};

}  // namespace samebits::tensor_file
