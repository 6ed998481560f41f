// The command line, understood and carried out.
#pragma once

#include "fpinspect/output/output.hpp"

namespace fpinspect {

/// Runs the subcommand that the arguments of the process name, which writes its result to `out`.
/// Throws usage_error for arguments that mean nothing, contradict each other or would be ignored;
/// else what the subcommand throws.
void run_command_line(int argc, char** argv, output& out);

}  // namespace fpinspect
