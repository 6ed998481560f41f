// Exit codes of fpinspect, and exceptions for the exit codes that the libraries do not throw for.
#pragma once

#include <stdexcept>

namespace fpinspect {

enum class exit_code : int {
  ok = 0,
  check_failed = 1,
  command_line = 2,
  file = 3,  ///< error of an input file, an output file, standard output, or memory
  backend = 4,
};

/// The command line names something that does not exist, or contradicts itself. For all exceptions
/// of this file, what() is one line of valid UTF-8.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The backend is unknown, or this machine cannot run it.
class backend_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A check failed. All results have been written before.
class check_failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Standard output cannot be written.
class output_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The reader of standard output has closed it, as `head` does. Prints no message.
class closed_pipe : public output_error {
 public:
  using output_error::output_error;
};

}  // namespace fpinspect
