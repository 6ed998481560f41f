// Reads the fields of a file from left to right: those of a GGUF header or of a pickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor_file/error.hpp"
#include "tensor_file/files/little_endian.hpp"

namespace samebits::tensor_file {

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
    return {reinterpret_cast<const char*>(file_.data()) + from, size};
  }

  void skip(std::uint64_t bytes, const char* what) {
    if (bytes > rest()) fail(std::string("the file ends before the end of ") + what);
    at_ += bytes;
  }

  [[noreturn]] void fail(const std::string& message) const {
    malformed("byte " + std::to_string(at_) + ": " + message);
  }

 private:
  std::span<const std::byte> file_;
  std::uint64_t at_ = 0;
};

}  // namespace samebits::tensor_file
