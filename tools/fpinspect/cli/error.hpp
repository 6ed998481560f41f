// Exit codes of fpinspect, and the exceptions that lead to those the libraries do not know of.
#pragma once

#include <stdexcept>

namespace fpinspect {

enum class exit_code : int {
  ok = 0,
  check_failed = 1,
  command_line = 2,
  file = 3,  ///< an input file, an output file, standard output, or memory
  backend = 4,
};

/// The command line asks for something that does not exist or contradicts itself.
/// what() of this and the others is one line of valid UTF-8.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A backend that is unknown or that this machine cannot run.
class backend_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A check found what should not be; what there is to show has been written.
class check_failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Standard output cannot be written.
class output_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The reader of standard output has gone, as `head` does; not worth a message.
class closed_pipe : public output_error {
 public:
  using output_error::output_error;
};

}  // namespace fpinspect
