// A machine for the operations of pickles: implementation.
#include "tensor_file/torch/pickle.hpp"

#include <cstdio>

#include "tensor_file/torch/calls.hpp"

namespace samebits::tensor_file {
namespace {

constexpr object_id absent = ~object_id{0};
constexpr std::size_t longest_name = 4096;

}  // namespace

void pickle_machine::push(object_id id) {
  constexpr std::size_t most = 1'000'000;
  if (stack_.size() == most) fail("more than 1000000 objects on the stack");
  stack_.push_back(id);
}

object_id pickle_machine::top() const {
  if (stack_.size() == (marks_.empty() ? 0 : marks_.back())) fail("the stack is empty");
  return stack_.back();
}

object_id pickle_machine::pop() {
  const object_id id = top();
  stack_.pop_back();
  return id;
}

std::vector<object_id> pickle_machine::pop_to_mark() {
  if (marks_.empty()) fail("no mark is on the stack");
  const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<object_id> items(from, stack_.end());
  stack_.erase(from, stack_.end());
  marks_.pop_back();
  return items;
}

// An integer of this many bytes in two's complement.
void pickle_machine::push_long(std::string_view bytes) {
  if (bytes.size() > sizeof(std::int64_t)) return push_text(object_kind::bytes, bytes);
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  push_integer(static_cast<std::int64_t>(value));
}

void pickle_machine::push_tuple(std::size_t size) {
  std::vector<object_id> items(size);
  while (size-- > 0) items[size] = pop();
  push(objects_.add(object_kind::tuple, std::move(items)));
}

void pickle_machine::add_items(object_kind kind, const std::vector<object_id>& items) {
  object& to = objects_[top()];
  if (to.kind == object_kind::inert) return;
  if (to.kind != kind) fail("items are added to an object that cannot hold them");
  if (kind == object_kind::dict && items.size() % 2 != 0) fail("a key without a value");
  to.items().insert(to.items().end(), items.begin(), items.end());
}

void pickle_machine::put(std::uint64_t index) {
  if (index >= operations_) fail("a memo index above the number of operations");
  if (index >= memo_.size()) memo_.resize(index + 1, absent);
  memo_[index] = top();
}

void pickle_machine::get(std::uint64_t index) {
  if (index >= memo_.size() || memo_[index] == absent) fail("nothing has the memo index ", index);
  push(memo_[index]);
}

std::string_view pickle_machine::read_line() {
  file_cursor ahead = in_;
  std::size_t size = 0;
  while (ahead.read<std::uint8_t>("a name") != '\n') {
    if (++size > longest_name) fail("a name of more than 4096 bytes");
  }
  const std::string_view line = in_.read_text(size, "a name");
  in_.skip(1, "a name");
  return line;
}

void pickle_machine::push_name() {
  const std::string_view module = read_line();
  push(add_global(objects_, module, read_line()));
}

void pickle_machine::push_name_of_texts() {
  const object& name = objects_[pop()];
  const object& module = objects_[pop()];
  if (name.kind != object_kind::text || module.kind != object_kind::text) {
    fail("the name of a global is not text");
  }
  push(add_global(objects_, module.text(), name.text()));
}

void pickle_machine::push_result(object_id (*make)(object_store&, object_id, object_id)) {
  const object_id arguments = pop();
  const object_id callee = pop();
  push(in_context(where(), [&] { return make(objects_, callee, arguments); }));
}

/// What each operation does, by its byte; behind each, its name in pickletools.py.
struct pickle_machine::operations {
  using machine = pickle_machine;
  using action = void (*)(machine&);

  template <class Word>
  static void push_number(machine& m) {
    m.push_integer(static_cast<Word>(m.in_.read<std::make_unsigned_t<Word>>("a number")));
  }
  template <object_kind Kind, class Length>
  static void push_string(machine& m) {
    m.push_text(Kind, m.in_.read_string<Length>("a text"));
  }
  template <object_kind Kind>
  static void push_empty(machine& m) {
    m.push(m.objects_.add(Kind, std::vector<object_id>()));
  }
  /// Adds the objects above the last mark.
  template <object_kind Kind>
  static void add_to_mark(machine& m) {
    const std::vector<object_id> items = m.pop_to_mark();
    m.add_items(Kind, items);
  }
  template <class Index>
  static std::uint64_t memo_index(machine& m) {
    return m.in_.read<Index>("a memo index");
  }
  static void check_protocol(machine& m) {
    const auto version = m.in_.read<std::uint8_t>("the protocol");
    unsupported_if(version < 2 || version > 5, m.where(), ": protocol ", version,
                   " of pickles; 2 to 5 are read");
  }
  static void check_frame(machine& m) {
    if (m.in_.read<std::uint64_t>("a frame") > m.in_.rest()) m.fail("a frame exceeds the file");
  }
  static void add_one(machine& m) {
    const object_id item = m.pop();
    m.add_items(object_kind::list, {item});
  }
  static void set_one(machine& m) {
    const object_id value = m.pop();
    const object_id key = m.pop();
    m.add_items(object_kind::dict, {key, value});
  }
  static void skip_items(machine& m) {
    m.pop_to_mark();
    m.add_items(object_kind::inert, {});
  }
  static void build(machine& m) {
    const object_id state = m.pop();
    in_context(m.where(), [&] { require_buildable(m.objects_[m.top()], m.objects_[state]); });
  }
  static void push_storage(machine& m) {
    const object_id id = m.pop();
    m.push(in_context(m.where(), [&] { return add_storage(m.objects_, id); }));
  }

  static constexpr std::array<action, 256> by_byte() {
    using enum object_kind;
    std::array<action, 256> all{};
    const auto set = [&](std::uint8_t byte, action run) { all[byte] = run; };
    set('N', [](machine& m) { m.push(object_store::none); });  // NONE
    set(0x88, [](machine& m) { m.push(object_store::yes); });  // NEWTRUE
    set(0x89, [](machine& m) { m.push(object_store::no); });   // NEWFALSE
    set('J', push_number<std::int32_t>);                       // BININT
    set('K', push_number<std::uint8_t>);                       // BININT1
    set('M', push_number<std::uint16_t>);                      // BININT2
    set(0x8a, [](machine& m) { m.push_long(m.in_.read_string<std::uint8_t>(number)); });   // LONG1
    set(0x8b, [](machine& m) { m.push_long(m.in_.read_string<std::uint32_t>(number)); });  // LONG4
    set('G', [](machine& m) { m.push_text(plain, m.in_.read_text(8, number)); });  // BINFLOAT
    set('U', push_string<text, std::uint8_t>);                          // SHORT_BINSTRING
    set('T', push_string<text, std::uint32_t>);                         // BINSTRING
    set(0x8c, push_string<text, std::uint8_t>);                         // SHORT_BINUNICODE
    set('X', push_string<text, std::uint32_t>);                         // BINUNICODE
    set(0x8d, push_string<text, std::uint64_t>);                        // BINUNICODE8
    set('C', push_string<bytes, std::uint8_t>);                         // SHORT_BINBYTES
    set('B', push_string<bytes, std::uint32_t>);                        // BINBYTES
    set(0x8e, push_string<bytes, std::uint64_t>);                       // BINBYTES8
    set(0x96, push_string<bytes, std::uint64_t>);                       // BYTEARRAY8
    set('(', [](machine& m) { m.marks_.push_back(m.stack_.size()); });  // MARK
    set(')', push_empty<tuple>);                                        // EMPTY_TUPLE
    set(']', push_empty<list>);                                         // EMPTY_LIST
    set('}', push_empty<dict>);                                         // EMPTY_DICT
    set(0x8f, [](machine& m) { m.push(add_inert(m.objects_, "builtins", "set")); });  // EMPTY_SET
    set('t', [](machine& m) { m.push(m.objects_.add(tuple, m.pop_to_mark())); });     // TUPLE
    set(0x85, [](machine& m) { m.push_tuple(1); });                                   // TUPLE1
    set(0x86, [](machine& m) { m.push_tuple(2); });                                   // TUPLE2
    set(0x87, [](machine& m) { m.push_tuple(3); });                                   // TUPLE3
    set('a', add_one);                                                                // APPEND
    set('e', add_to_mark<list>);                                                      // APPENDS
    set('s', set_one);                                                                // SETITEM
    set('u', add_to_mark<dict>);                                                      // SETITEMS
    set(0x90, skip_items);                                                            // ADDITEMS
    set('q', [](machine& m) { m.put(memo_index<std::uint8_t>(m)); });                 // BINPUT
    set('r', [](machine& m) { m.put(memo_index<std::uint32_t>(m)); });                // LONG_BINPUT
    set('h', [](machine& m) { m.get(memo_index<std::uint8_t>(m)); });                 // BINGET
    set('j', [](machine& m) { m.get(memo_index<std::uint32_t>(m)); });                // LONG_BINGET
    set(0x94, [](machine& m) { m.put(m.memo_.size()); });                             // MEMOIZE
    set('c', [](machine& m) { m.push_name(); });                                      // GLOBAL
    set(0x93, [](machine& m) { m.push_name_of_texts(); });  // STACK_GLOBAL
    set('R', [](machine& m) { m.push_result(call); });      // REDUCE
    set(0x81, [](machine& m) { m.push_result(make); });     // NEWOBJ
    set('b', build);                                        // BUILD
    set('Q', push_storage);                                 // BINPERSID
    set(0x80, check_protocol);                              // PROTO
    set(0x95, check_frame);                                 // FRAME
    return all;
  }

  static constexpr const char* number = "a number";
};

object_id pickle_machine::run() {
  constexpr std::uint64_t most = 10'000'000;
  constexpr std::uint8_t stop = '.';
  static constexpr auto actions = operations::by_byte();
  stack_.clear();
  marks_.clear();
  memo_.clear();
  for (;;) {
    operation_at_ = in_.at();
    if (operation_at_ > max_pickle_bytes) unsupported(where(), ": more than 256 MiB of pickles");
    if (operations_++ == most) unsupported(where(), ": more than 10000000 operations");
    const auto operation = in_.read<std::uint8_t>("the pickle");
    if (operation == stop) return pop();
    if (const auto run = actions[operation]) {
      run(*this);
      continue;
    }
    char code[5];
    static_cast<void>(std::snprintf(code, sizeof code, "0x%02x", operation));
    unsupported(where(), ": operation ", code, " of pickles, which files of tensors do not need");
  }
}

}  // namespace samebits::tensor_file
