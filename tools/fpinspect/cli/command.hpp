// A subcommand: one file with its options and what it does, which registers itself.
//
// Such a file includes this header for all that subcommands have in common: arguments and errors,
// texts, tables and JSON, and the standard library's strings, sequences and algorithms.
#pragma once

#include <unistd.h>

#include <cstdio>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/output/table.hpp"

namespace fpinspect {

/// Where a subcommand writes its result, and how.
struct session {
  output& out;
  bool json;  ///< --json
  terminal term;

  /// Writes an object whose first member is the version of its schema.
  void write_json(const json_object& document) const {
    out.write(json_text(json_object{{"schema", 1}}.add(document)));
  }
  /// Writes the document with --json, else the text.
  void write(const json_object& document, std::string_view text) const {
    if (json) return write_json(document);
    out.write(text);
  }
  /// Writes to standard error.
  template <class... Parts>
  static void note(const Parts&... text) {
    static_cast<void>(std::fputs(cat(text...).c_str(), stderr));
  }
  /// Writes a report to standard output, or to standard error if standard output has data.
  void report(const std::string& text, bool has_data) const {
    if (!has_data) return out.write(text);
    output other(STDERR_FILENO);
    other.write(text);
    other.flush();
  }
};

/// Writes the result of a subcommand, whose options are filled. Throws on every error.
using run_function = std::function<void(const session&)>;

struct command_entry {
  const char* name;
  const char* help;
  int rank;                                   ///< the position in help and in messages
  run_function (*declare)(option_list& add);  ///< declares the options
};

/// All subcommands, in the order of the linker.
inline std::vector<command_entry>& registered_commands() {
  static std::vector<command_entry> all;
  return all;
}

/// Registers a subcommand. Its file must be in an OBJECT library; the linker drops it from an archive.
/// Options live as long as their list, so that the function returned may refer to them:
///
///   run_function cast_command(option_list& add) {
///     auto& values = add.one_or_more("VALUE", "Numbers");
///     return [&](const session& s) { s.out.write(...); };
///   }
///   const registered cast_here("cast", "Round numbers", 30, cast_command);
struct registered {
  registered(const char* name, const char* help, int rank, run_function (*declare)(option_list&)) {
    registered_commands().push_back({name, help, rank, declare});
  }
};

/// A subcommand in several functions: a class whose members are its options, which `add` declares, and
/// which has run(const session&). Registered as run_of<its class>.
struct command {
  explicit command(option_list& list) : add(list) {}

 protected:
  option_list& add;
};
template <class Command>
run_function run_of(option_list& add) {
  return [made = std::make_shared<Command>(add)](const session& s) { made->run(s); };
}

/// Runs the subcommand that the process arguments name, which writes its result to `out`. Also
/// throws what the subcommand throws.
/// @throws usage_error  for arguments that are invalid, contradict each other or would have no
///   effect
void run_command_line(int argc, char** argv, output& out);

/// A message that may quote arguments, without the marks of the parser, as one line of UTF-8.
std::string unmarked_message(std::string text);

}  // namespace fpinspect
