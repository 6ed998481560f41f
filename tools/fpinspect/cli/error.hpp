// Exit codes of fpinspect, and exceptions for the exit codes that the libraries do not throw for.
#pragma once

#include <stdexcept>
#include <string>

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

template <exit_code Code>
struct error_with : tool_error {
  explicit error_with(const std::string& what) : tool_error(Code, what) {}
};

/// The command line names something that does not exist, or contradicts itself.
struct usage_error : error_with<exit_code::command_line> {
  using error_with::error_with;
};

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
