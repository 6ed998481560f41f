// The values in a .npy header: implementation.
#include "tensor_file/npy/npy_literal.hpp"

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {
namespace {

// The white space that Python skips between tokens inside brackets.
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void npy_literal_reader::fail(const std::string& message) const {
  malformed("byte " + std::to_string(text_offset_ + at_) + ": " + message);
}

char npy_literal_reader::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool npy_literal_reader::accept(char wanted) {
  if (peek() != wanted || at_ == text_.size()) return false;
  ++at_;
  return true;
}

void npy_literal_reader::expect(char wanted, const char* where) {
  if (!accept(wanted)) fail(std::string("expected '") + wanted + "' " + where);
}

void npy_literal_reader::expect_end() {
  peek();
  if (at_ < text_.size()) fail("only spaces may follow the dictionary");
}

std::string_view npy_literal_reader::read_string(const char* what) {
  const char mark = peek();
  if (mark != '\'' && mark != '"') fail(std::string("expected ") + what + " in quotes");
  const std::size_t start = ++at_;
  const auto inside = [&](char c) { return c != mark && c != '\\' && c != '\n'; };
  while (at_ < text_.size() && inside(text_[at_])) ++at_;
  if (at_ == text_.size() || text_[at_] != mark) {
    fail("a string holds an escape or a line break, or does not end");
  }
  return text_.substr(start, at_++ - start);
}

bool npy_literal_reader::read_bool(const char* what) {
  peek();
  for (const bool value : {false, true}) {
    const std::string_view word = value ? "True" : "False";
    if (text_.substr(at_).starts_with(word)) {
      at_ += word.size();
      return value;
    }
  }
  fail(std::string(what) + " must be True or False");
}

std::uint64_t npy_literal_reader::read_extent() {
  if (peek() == '-') fail("shape holds a negative number");
  if (!is_digit(peek())) fail("shape must be a tuple of integers");
  const std::size_t start = at_;
  std::uint64_t value = 0;
  for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
    const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      fail("shape holds a number that exceeds 64 bits");
    }
  }
  const std::size_t digits = at_ - start;
  if (digits > 1 && text_[start] == '0') fail("shape holds a number with a leading zero");
  if (version_ < 3 && at_ < text_.size() && text_[at_] == 'L') ++at_;
  return value;
}

std::vector<std::uint64_t> npy_literal_reader::read_tuple() {
  if (!accept('(')) fail("shape must be a tuple");
  std::vector<std::uint64_t> shape;
  bool comma = true;
  while (!accept(')')) {
    if (!comma) fail("expected ',' or ')' in shape");
    if (shape.size() == max_rank) fail("shape has more than 64 dimensions");
    shape.push_back(read_extent());
    comma = accept(',');
  }
  if (shape.size() == 1 && !comma) fail("shape must be a tuple: (3) is a number, (3,) is one");
  return shape;
}

}  // namespace samebits::tensor_file
