// Values on the command line that look like options, on their way through the parser.
#pragma once

#include <string>
#include <vector>

#include "fpinspect/cli/commands.hpp"

namespace fpinspect {

/// The arguments of the process, with a mark before each that is a value for certain: negative
/// numbers and all that follows "--".
std::vector<std::string> marked_arguments(int argc, char** argv);

/// Takes the marks off again, from every text a subcommand was given.
void unmark(formats_arguments& arguments);
void unmark(show_arguments& arguments);
void unmark(cast_arguments& arguments);
void unmark(convert_arguments& arguments);
void unmark(quantize_arguments& arguments);
void unmark(dequantize_arguments& arguments);
void unmark(recipes_arguments& arguments);
void unmark(diff_arguments& arguments);
void unmark(scaler_arguments& arguments);
void unmark(arith_arguments& arguments);
void unmark(matmul_arguments& arguments);
void unmark(units_arguments& arguments);
void unmark(backends_arguments& arguments);
void unmark(verify_arguments& arguments);
void unmark(tensor_arguments& arguments);

/// A message that may quote marked arguments, as it may be shown.
std::string unmarked_message(std::string text);

}  // namespace fpinspect
