// An open POSIX file descriptor that closes itself, and the text of an errno.
#pragma once

#include <unistd.h>

#include <system_error>

#include "tensor_file/common.hpp"

namespace samebits::tensor_file {

class descriptor {
 public:
  explicit descriptor(int number) noexcept : number_(number) {}
  ~descriptor() { close(); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  descriptor(descriptor&&) = delete;
  descriptor& operator=(descriptor&&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }
  [[nodiscard]] int number() const noexcept { return number_; }

  /// Returns false if closing reports a loss of written data; errno then has the reason.
  bool close() noexcept {
    const int number = number_;
    number_ = -1;
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

inline std::string errno_text(int code) { return std::generic_category().message(code); }

/// @throws file_error  (unwritable) always
[[noreturn]] inline void cannot_write(const char* what, int code) {
  throw file_error(error_kind::unwritable, cat(what, ": ", errno_text(code)));
}

}  // namespace samebits::tensor_file
