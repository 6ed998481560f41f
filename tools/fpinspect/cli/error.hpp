// Exit codes of fpinspect, and exceptions for the exit codes that the libraries do not throw for.
#pragma once

#include <stdexcept>
#include <string>

#include "samebits/core/cat.hpp"

namespace fpinspect {

enum class exit_code : int {
  ok = 0,
  check_failed = 1,
  command_line = 2,
  file = 3,  ///< error of an input file, an output file, standard output, or memory
  backend = 4,
};

/// An error that ends the program with its exit code. what() is one line of valid UTF-8.
struct tool_error : std::runtime_error {
  tool_error(exit_code c, const std::string& what) : std::runtime_error(what), code(c) {}
  exit_code code;
};

/// An error with this exit code, whose message is the concatenation of the parts.
template <exit_code Code>
struct error_with : tool_error {
  template <class... Parts>
  explicit error_with(const Parts&... message)
      : tool_error(Code, samebits::detail::cat(message...)) {}
};

/// The command line names something that does not exist, or contradicts itself.
struct usage_error : error_with<exit_code::command_line> {
  using error_with::error_with;
};

/// Refuses a command line that is wrong.
template <class... Parts>
void refuse_if(bool is_wrong, const Parts&... message) {
  if (is_wrong) throw usage_error(message...);
}

/// The backend is unknown, or this machine cannot run it.
struct backend_error : error_with<exit_code::backend> {
  using error_with::error_with;
};

/// A check failed. main() flushes standard output first.
struct check_failed : error_with<exit_code::check_failed> {
  using error_with::error_with;
};

/// Standard output cannot be written.
struct output_error : error_with<exit_code::file> {
  using error_with::error_with;
};

/// The reader of standard output has closed it, as `head` does. Prints no message.
struct closed_pipe : output_error {
  using output_error::output_error;
};

}  // namespace fpinspect
