// Files for shells and `man`, made from the declared subcommands and options: implementation.
#include "fpinspect/cli/help/shell_files.hpp"

#include "samebits/core/config.hpp"

namespace fpinspect {

// --- The manual page -----------------------------------------------------------------------------

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

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string argument_text(const CLI::Option& option) {
  if (option.get_positional()) return cat("\\fI", troff(option.get_name()), "\\fR");
  return cat("\\fB", troff(option.get_name(false, true)), "\\fR",
             takes_value(option) ? " \\fIVALUE\\fR" : "");
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

// --- Completion scripts for bash, zsh and fish ---------------------------------------------------

namespace {

/// The text with `before` in front of each character that is in `special`.
std::string escaped(std::string_view text, std::string_view special, std::string_view before) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += before;
    result += c;
  }
  return result;
}

/// A text in single quotes, for all three shells.
std::string in_quotes(std::string_view text) { return cat("'", escaped(text, "'", "'\\'"), "'"); }

/// Calls f(name without dashes, option) for each option with a long name.
template <class F>
void for_each_option(const CLI::App& command, const F& f) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) f(name, *option);
  }
}

std::string option_words(const CLI::App& command) {
  std::string words;
  for_each_option(command,
                  [&](const std::string& name, const CLI::Option&) { words += " --" + name; });
  return words;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string names, options;
  for (const CLI::App* command : app.get_subcommands({})) {
    names += (names.empty() ? "" : " ") + command->get_name();
    options +=
        cat("    ", command->get_name(), ") words=", in_quotes(option_words(*command)), " ;;\n");
  }
  // Without a match bash completes the names of files.
  return cat(
      "# bash completion of fpinspect\n"
      "_fpinspect() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words\n"
      "  ((COMP_CWORD > 1)) || command=\n"
      "  case $command in\n"
      "    '') words=",
      in_quotes(cat(names, " help", option_words(app))), " ;;\n    help) words=", in_quotes(names),
      " ;;\n", options,
      "  esac\n"
      "  COMPREPLY=()\n"
      "  if [[ $current == -* || -z $command || $command == help ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  fi\n"
      "}\n"
      "complete -o bashdefault -o default -F _fpinspect fpinspect\n");
}

std::string zsh_completion(const CLI::App& app) {
  std::string commands, options;
  for (const CLI::App* command : app.get_subcommands({})) {
    commands +=
        cat("  ", in_quotes(cat(command->get_name(), ":", command->get_description())), "\n");
    options += cat("  ", command->get_name(), ") _arguments");
    for_each_option(*command, [&](const std::string& name, const CLI::Option& option) {
      const std::string text = escaped(option.get_description(), "[]:\\", "\\");
      options +=
          cat(" \\\n    ",
              in_quotes(cat("--", name, "[", text, "]", takes_value(option) ? ":value:" : "")));
    });
    options += " \\\n    '*:file:_files' ;;\n";
  }
  return cat("#compdef fpinspect\nlocal -a commands=(\n", commands,
             ")\n"
             "if ((CURRENT == 2)); then\n"
             "  _describe command commands\n"
             "  return\n"
             "fi\n"
             "shift words\n"
             "((CURRENT--))\n"
             "case $words[1] in\n",
             options, "esac\n");
}

std::string fish_completion(const CLI::App& app) {
  std::string text = "# fish completion of fpinspect\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    text += cat("complete -c fpinspect -n __fish_use_subcommand -f -a ", name, " -d ",
                in_quotes(command->get_description()), "\n");
    for_each_option(*command, [&](const std::string& option_name, const CLI::Option& option) {
      text +=
          cat("complete -c fpinspect -n '__fish_seen_subcommand_from ", name, "' -l ", option_name,
              takes_value(option) ? " -r" : "", " -d ", in_quotes(option.get_description()), "\n");
    });
  }
  return text;
}

}  // namespace fpinspect
