// Parses the command line and runs the subcommand.
#pragma once

#include <string>

#include "fpinspect/output/output.hpp"

namespace fpinspect {

/// Runs the subcommand that the process arguments name, which writes its result to `out`. Also
/// throws what the subcommand throws.
/// @throws usage_error  for arguments that are invalid, contradict each other or would have no
///   effect
void run_command_line(int argc, char** argv, output& out);

/// A message that may quote arguments, without the marks of the parser, as one line of UTF-8.
std::string unmarked_message(std::string text);

}  // namespace fpinspect
