// The manual page.
#include <string>
#include <string_view>

#include "fpinspect/cli/help/shell_files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "samebits/core/config.hpp"

namespace fpinspect {
namespace {

/// A text in troff's language: minus signs and backslashes are escaped, and no line begins with a
/// control character.
std::string troff(std::string_view text) {
  std::string result;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '-') {
      result += "\\-";
    } else if (c == '\\') {
      result += "\\e";
    } else {
      result += c;
    }
    at_line_start = c == '\n';
  }
  return result;
}

std::string argument_text(const CLI::Option& option) {
  if (option.get_positional()) return cat("\\fI", troff(option.get_name()), "\\fR");
  const bool takes_value = option.get_items_expected_max() > 0;
  return cat("\\fB", troff(option.get_name(false, true)), "\\fR",
             takes_value ? " \\fIVALUE\\fR" : "");
}

std::string command_text(const CLI::App& command) {
  std::string text = cat(".SS \"fpinspect ", troff(command.get_name()), "\"\n",
                         troff(command.get_description()), ".\n");
  for (const CLI::Option* option : command.get_options()) {
    text += cat(".TP\n", argument_text(*option), "\n", troff(option->get_description()), "\n");
  }
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string text = cat(
      ".TH FPINSPECT 1 \"\" \"samebits " SAMEBITS_VERSION
      "\"\n"
      ".SH NAME\nfpinspect \\- ",
      troff(app.get_description()),
      "\n"
      ".SH SYNOPSIS\n\\fBfpinspect\\fR \\fISUBCOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n"
      ".SH DESCRIPTION\n",
      troff(app.get_footer()), "\n.SH SUBCOMMANDS\n");
  for (const CLI::App* command : app.get_subcommands({})) text += command_text(*command);
  return text;
}

}  // namespace fpinspect
