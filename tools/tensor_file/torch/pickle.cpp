// A machine for the operations of pickles: implementation.
#include "tensor_file/torch/pickle.hpp"

#include <cstdio>

#include "tensor_file/torch/calls.hpp"

namespace samebits::tensor_file {
namespace {

// The operations, by their bytes [pickletools.py].
enum : std::uint8_t {
  mark = '(',
  stop = '.',
  none = 'N',
  newtrue = 0x88,
  newfalse = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  long4 = 0x8b,
  binfloat = 'G',
  short_binstring = 'U',
  binstring = 'T',
  short_binunicode = 0x8c,
  binunicode = 'X',
  binunicode8 = 0x8d,
  short_binbytes = 'C',
  binbytes = 'B',
  binbytes8 = 0x8e,
  bytearray8 = 0x96,
  empty_tuple = ')',
  empty_list = ']',
  empty_dict = '}',
  empty_set = 0x8f,
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  append = 'a',
  appends = 'e',
  setitem = 's',
  setitems = 'u',
  additems = 0x90,
  binput = 'q',
  long_binput = 'r',
  binget = 'h',
  long_binget = 'j',
  memoize = 0x94,
  global = 'c',
  stack_global = 0x93,
  reduce = 'R',
  newobj = 0x81,
  build = 'b',
  binpersid = 'Q',
  proto = 0x80,
  frame = 0x95,
};

constexpr object_id absent = ~object_id{0};
constexpr std::size_t longest_name = 4096;

}  // namespace

void pickle_machine::fail(const std::string& message) const { malformed(where() + ": " + message); }

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

object_id pickle_machine::run() {
  constexpr std::uint64_t most = 10'000'000;
  stack_.clear();
  marks_.clear();
  memo_.clear();
  for (;;) {
    operation_at_ = in_.at();
    if (operation_at_ > max_pickle_bytes)
      unsupported(cat(where(), ": more than 256 MiB of pickles"));
    if (operations_++ == most) unsupported(cat(where(), ": more than 10000000 operations"));
    const auto operation = in_.read<std::uint8_t>("the pickle");
    if (operation == stop) return pop();
    if (run_value(operation) || run_container(operation) || run_memo(operation) ||
        run_call(operation)) {
      continue;
    }
    char code[5];
    static_cast<void>(std::snprintf(code, sizeof code, "0x%02x", operation));
    unsupported(
        cat(where(), ": operation ", code, " of pickles, which files of tensors do not need"));
  }
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

bool pickle_machine::run_value(std::uint8_t operation) {
  constexpr const char* number = "a number";
  constexpr const char* text = "a text";
  switch (operation) {
    case none: push(object_store::none); return true;
    case newtrue: push(object_store::yes); return true;
    case newfalse: push(object_store::no); return true;
    case binint1: push_integer(in_.read<std::uint8_t>(number)); return true;
    case binint2: push_integer(in_.read<std::uint16_t>(number)); return true;
    case binint:
      push_integer(static_cast<std::int32_t>(in_.read<std::uint32_t>(number)));
      return true;
    case long1: push_long(in_.read_string<std::uint8_t>(number)); return true;
    case long4: push_long(in_.read_string<std::uint32_t>(number)); return true;
    case binfloat: push_text(object_kind::plain, in_.read_text(8, number)); return true;
    case short_binstring:
    case short_binunicode:
      push_text(object_kind::text, in_.read_string<std::uint8_t>(text));
      return true;
    case binstring:
    case binunicode:
      push_text(object_kind::text, in_.read_string<std::uint32_t>(text));
      return true;
    case binunicode8: push_text(object_kind::text, in_.read_string(text)); return true;
    case short_binbytes:
      push_text(object_kind::bytes, in_.read_string<std::uint8_t>(text));
      return true;
    case binbytes: push_text(object_kind::bytes, in_.read_string<std::uint32_t>(text)); return true;
    case binbytes8:
    case bytearray8: push_text(object_kind::bytes, in_.read_string(text)); return true;
    default: return false;
  }
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

bool pickle_machine::run_container(std::uint8_t operation) {
  const std::vector<object_id> nothing;
  switch (operation) {
    case mark: marks_.push_back(stack_.size()); return true;
    case empty_tuple: push(objects_.add(object_kind::tuple, nothing)); return true;
    case empty_list: push(objects_.add(object_kind::list, nothing)); return true;
    case empty_dict: push(objects_.add(object_kind::dict, nothing)); return true;
    case empty_set: push(add_inert(objects_, "builtins", "set")); return true;
    case tuple: push(objects_.add(object_kind::tuple, pop_to_mark())); return true;
    case tuple1: push_tuple(1); return true;
    case tuple2: push_tuple(2); return true;
    case tuple3: push_tuple(3); return true;
    case append: {
      const object_id item = pop();
      add_items(object_kind::list, {item});
      return true;
    }
    case appends: {
      const std::vector<object_id> items = pop_to_mark();
      add_items(object_kind::list, items);
      return true;
    }
    case setitem: {
      const object_id value = pop();
      const object_id key = pop();
      add_items(object_kind::dict, {key, value});
      return true;
    }
    case setitems: {
      const std::vector<object_id> items = pop_to_mark();
      add_items(object_kind::dict, items);
      return true;
    }
    case additems:
      pop_to_mark();
      add_items(object_kind::inert, {});
      return true;
    default: return false;
  }
}

void pickle_machine::put(std::uint64_t index) {
  if (index >= operations_) fail("a memo index above the number of operations");
  if (index >= memo_.size()) memo_.resize(index + 1, absent);
  memo_[index] = top();
}

void pickle_machine::get(std::uint64_t index) {
  if (index >= memo_.size() || memo_[index] == absent) {
    fail(cat("nothing has the memo index ", index));
  }
  push(memo_[index]);
}

bool pickle_machine::run_memo(std::uint8_t operation) {
  constexpr const char* what = "a memo index";
  switch (operation) {
    case binput: put(in_.read<std::uint8_t>(what)); return true;
    case long_binput: put(in_.read<std::uint32_t>(what)); return true;
    case memoize: put(memo_.size()); return true;
    case binget: get(in_.read<std::uint8_t>(what)); return true;
    case long_binget: get(in_.read<std::uint32_t>(what)); return true;
    default: return false;
  }
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

bool pickle_machine::run_call(std::uint8_t operation) {
  switch (operation) {
    case proto: {
      const auto version = in_.read<std::uint8_t>("the protocol");
      if (version < 2 || version > 5) {
        unsupported(cat(where(), ": protocol ", version, " of pickles; 2 to 5 are read"));
      }
      return true;
    }
    case frame:
      if (in_.read<std::uint64_t>("a frame") > in_.rest()) fail("a frame exceeds the file");
      return true;
    case global: {
      const std::string_view module = read_line();
      push(add_global(objects_, module, read_line()));
      return true;
    }
    case stack_global: {
      const object& name = objects_[pop()];
      const object& module = objects_[pop()];
      if (name.kind != object_kind::text || module.kind != object_kind::text) {
        fail("the name of a global is not text");
      }
      push(add_global(objects_, module.text(), name.text()));
      return true;
    }
    case reduce:
    case newobj: {
      const object_id arguments = pop();
      const object_id callee = pop();
      push(in_context(where(), [&] {
        return operation == reduce ? call(objects_, callee, arguments)
                                   : make(objects_, callee, arguments);
      }));
      return true;
    }
    case build: {
      const object_id state = pop();
      in_context(where(), [&] { require_buildable(objects_[top()], objects_[state]); });
      return true;
    }
    case binpersid: {
      const object_id id = pop();
      push(in_context(where(), [&] { return add_storage(objects_, id); }));
      return true;
    }
    default: return false;
  }
}

}  // namespace samebits::tensor_file
