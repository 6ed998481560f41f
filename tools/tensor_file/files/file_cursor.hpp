// Little-endian integers at any position of a file, and its fields from left to right: those of a GGUF
// header or of a pickle.
#pragma once

#include "tensor_file/common.hpp"

namespace samebits::tensor_file {

/// The integer at `at`. The caller has checked that all its bytes are in the file.
template <std::unsigned_integral Word>
Word little_endian(std::span<const std::byte> file, std::uint64_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < sizeof(Word); ++i) {
    word |= std::to_integer<std::uint64_t>(file[at + i]) << (8 * i);
  }
  return static_cast<Word>(word);
}

/// Every function throws file_error (malformed), which names the byte, if the file ends before.
class file_cursor {
 public:
  explicit file_cursor(std::span<const std::byte> file) : file_(file) {}

  [[nodiscard]] std::uint64_t at() const { return at_; }
  /// Number of bytes between here and the end of the file.
  [[nodiscard]] std::uint64_t rest() const { return file_.size() - at_; }

  template <std::unsigned_integral Word>
  Word read(const char* what) {
    const std::uint64_t from = at_;
    skip(sizeof(Word), what);
    return little_endian<Word>(file_, from);
  }

  /// A string with its length before it.
  template <std::unsigned_integral Length = std::uint64_t>
  std::string_view read_string(const char* what) {
    return read_text(read<Length>(what), what);
  }

  std::string_view read_text(std::uint64_t size, const char* what) {
    const std::uint64_t from = at_;
    skip(size, what);
    return text_of(file_.subspan(from, size));
  }

  void skip(std::uint64_t bytes, const char* what) {
    if (bytes > rest()) fail("the file ends before the end of ", what);
    at_ += bytes;
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... message) const {
    malformed("byte ", at_, ": ", message...);
  }

 private:
  std::span<const std::byte> file_;
  std::uint64_t at_ = 0;
};

}  // namespace samebits::tensor_file
