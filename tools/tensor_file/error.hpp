// The only exception type of the tensor-file library: the kind of error, and a one-line message
// that says where.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "samebits/core/cat.hpp"

namespace samebits::tensor_file {

using detail::cat;

enum class error_kind : std::uint8_t {
  missing,         ///< no file at the path
  unreadable,      ///< the file is there but cannot be opened or mapped, or is not a regular file
  unwritable,      ///< an output file cannot be created, written or renamed into place
  unsupported,     ///< a known format, version or element type that this library does not read
  malformed,       ///< the file breaks a rule of its own format
  no_such_tensor,  ///< the file has no tensor with this name
};

/// what() is one line of valid UTF-8. Bytes that come from a file are escaped and shortened.
class file_error : public std::runtime_error {
 public:
  file_error(error_kind kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}

  [[nodiscard]] error_kind kind() const noexcept { return kind_; }

 private:
  error_kind kind_;
};

/// Throws an error whose message is the concatenation of the parts.
template <class... Parts>
[[noreturn]] void malformed(const Parts&... message) {
  throw file_error(error_kind::malformed, cat(message...));
}
template <class... Parts>
[[noreturn]] void unsupported(const Parts&... message) {
  throw file_error(error_kind::unsupported, cat(message...));
}
/// Throws such an error if something is wrong; else the parts are not concatenated.
template <class... Parts>
void malformed_if(bool is_wrong, const Parts&... message) {
  if (is_wrong) malformed(message...);
}
template <class... Parts>
void unsupported_if(bool is_wrong, const Parts&... message) {
  if (is_wrong) unsupported(message...);
}

/// Returns f(). The message of its file_error then begins with `where` and a colon.
template <class Function>
auto in_context(const std::string& where, const Function& f) {
  try {
    return f();
  } catch (const file_error& error) {
    throw file_error(error.kind(), where + ": " + error.what());
  }
}

}  // namespace samebits::tensor_file
