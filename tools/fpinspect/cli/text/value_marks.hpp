// Value marks: pass command line values that look like options through the parser.
#pragma once

#include <string>
#include <vector>

#include "fpinspect/cli/commands.hpp"

namespace fpinspect {

/// The process arguments. Each argument that is certainly a value is prefixed with a mark: negative
/// numbers, and all arguments after "--".
std::vector<std::string> marked_arguments(int argc, char** argv);

/// Removes the marks from all texts of a subcommand's arguments.
void unmark(formats_arguments& arguments);
void unmark(show_arguments& arguments);
void unmark(cast_arguments& arguments);
void unmark(convert_arguments& arguments);
void unmark(quantize_arguments& arguments);
void unmark(dequantize_arguments& arguments);
void unmark(recipes_arguments& arguments);
void unmark(diff_arguments& arguments);
void unmark(compare_arguments& arguments);
void unmark(scaler_arguments& arguments);
void unmark(arith_arguments& arguments);
void unmark(matmul_arguments& arguments);
void unmark(units_arguments& arguments);
void unmark(backends_arguments& arguments);
void unmark(verify_arguments& arguments);
void unmark(tensor_arguments& arguments);
void unmark(range_arguments& arguments);
void unmark(resolution_arguments& arguments);
void unmark(memory_arguments& arguments);
void unmark(demo_arguments& arguments);
void unmark(update_arguments& arguments);
void unmark(claims_arguments& arguments);
void unmark(table_arguments& arguments);
void unmark(advise_arguments& arguments);
void unmark(report_arguments& arguments);
void unmark(explorer_arguments& arguments);

/// Removes the marks from a message that may quote arguments.
std::string unmarked_message(std::string text);

}  // namespace fpinspect
