// Parses the command line and runs the subcommand.
#pragma once

#include "fpinspect/output/output.hpp"

namespace fpinspect {

/// Runs the subcommand that the process arguments name, which writes its result to `out`. Also
/// throws what the subcommand throws.
/// @throws usage_error  for arguments that are invalid, contradict each other or would have no
///   effect
void run_command_line(int argc, char** argv, output& out);

}  // namespace fpinspect
