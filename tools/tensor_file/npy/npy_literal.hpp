// The values in a .npy header: a reader for a small subset of Python's literals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace samebits::tensor_file {

/// Reads the header text from left to right. Every function skips white space first. If the text is
/// not what the function expects, it throws file_error (malformed), which names the byte of the
/// file.
class npy_literal_reader {
 public:
  /// @param text_offset  position of the text in the file, for messages
  /// @param version  major version; versions 1 and 2 may come from Python 2, which wrote 3L for a
  ///   long
  npy_literal_reader(std::string_view text, std::uint64_t text_offset, int version)
      : text_(text), text_offset_(text_offset), version_(version) {}

  /// The next character after white space, or '\0' at the end. Consumes white space only.
  char peek();
  /// Consumes the character if it is the next one.
  bool accept(char wanted);
  void expect(char wanted, const char* where);
  void expect_end();

  std::string_view read_string(const char* what);  ///< 'text' or "text", without escapes
  bool read_bool(const char* what);                ///< True or False
  std::vector<std::uint64_t> read_tuple();         ///< (), (3,), (3, 4) or (3, 4,)

  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::uint64_t read_extent();

  std::string_view text_;
  std::uint64_t text_offset_;
  int version_;
  std::size_t at_ = 0;
};

}  // namespace samebits::tensor_file
