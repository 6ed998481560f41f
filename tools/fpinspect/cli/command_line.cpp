// The parser, its subcommands, and the errors of a command line.
#include <CLI/CLI.hpp>

#include <list>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/help/shell_files.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/function.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

/// The number of letters to insert, remove or replace that lead from one text to the other.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

bool is_standard_input(const std::string& text) { return text.starts_with("-#"); }

bool is_negative_number(const std::string& text) {
  return text.starts_with('-') && parse(format_id::fp64, text).ok;
}

/// An older name of an option of a subcommand, or of all subcommands if there is none.
struct older_option {
  std::string_view command;
  std::string_view name;
  std::string_view now;
};
constexpr older_option older_options[] = {{"", "--round", "--rounding"},
                                          {"quantize", "--block", "--tile"},
                                          {"dequantize", "--block", "--tile"},
                                          {"matmul", "--promote", "--promotion"}};

/// The process arguments. Negative numbers and all arguments after "--" are marked as values. Older
/// names of options are replaced.
std::vector<std::string> marked_arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool values_only = false;
  for (int i = 1; i < argc; ++i) {
    std::string text = argv[i];
    if (!values_only && text == "--") {
      values_only = true;
    } else if (values_only || is_negative_number(text) || is_standard_input(text) ||
               text.starts_with(value_mark)) {
      arguments.push_back(value_mark + text);
    } else {
      for (const auto& [command, name, now] : older_options) {
        const bool here = command.empty() || contains(arguments, command);
        const bool older = text == name || text.starts_with(cat(name, "="));
        if (here && older) text.replace(0, name.size(), now);
      }
      arguments.push_back(std::move(text));
    }
  }
  return arguments;
}

class command_line {
 public:
  command_line() {
    app_.name("fpinspect");
    app_.require_subcommand(1);
    add_view(&app_);
    app_.set_version_flag("--version", "fpinspect " SAMEBITS_VERSION);
    app_.footer(
        "Numbers may be negative, decimal of any length, hexadecimal (0x1.8p3), inf, nan.\n"
        "Exit codes: 0 ok, 1 a check failed, 2 command line, 3 file, 4 backend.");
    std::vector<command_entry> entries = registered_commands();
    std::ranges::sort(
        entries, [](const command_entry& a, const command_entry& b) { return a.rank < b.rank; });
    for (const command_entry& entry : entries) add(entry);
    add_shell_files();
  }

  void run(int argc, char** argv, output& out) {
    std::vector<std::string> arguments = marked_arguments(argc, argv);
    if (arguments.empty()) arguments = {"help"};
    if (arguments.front() == "help") {  // equals --help after a subcommand, or alone
      if (arguments.size() > 2) throw usage_error("help takes the name of one subcommand");
      arguments.front() = "--help";
      std::reverse(arguments.begin(), arguments.end());
    }
    check_subcommand(arguments);
    try {
      parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
      return out.write(app_.help());
    } catch (const CLI::CallForVersion&) {
      return out.write(app_.version() + "\n");
    }
    refuse_empty_values();
    const CLI::App* const chosen = app_.get_subcommands().front();
    for (subcommand& one : subcommands_) {
      if (one.app != chosen) continue;
      one.options.interpret();
      write_json_bits(view_.json_bits);
      return one.run({out, view_.json, terminal(view_)});
    }
    if (chosen->get_name() == "manual") return out.write(manual_page(app_));
    if (shell_ == "bash") return out.write(bash_completion(app_));
    if (shell_ == "zsh") return out.write(zsh_completion(app_));
    if (shell_ == "fish") return out.write(fish_completion(app_));
    throw usage_error("SHELL: must be one of bash, zsh, fish");
  }

 private:
  struct subcommand {
    CLI::App* app;
    run_function run;
    option_list options;
  };

  /// Adds the view options, which may stand before or after the subcommand's name.
  void add_view(CLI::App* app) {
    app->add_flag("--json", view_.json, "Write JSON");
    app->add_flag("--json-bits", view_.json_bits,
                  "With --json: the bits of each binary64 number beside it");
    app->add_option("--color", view_.color, "auto, always or never")->capture_default_str();
  }

  void add(const command_entry& entry) {
    CLI::App* const app = app_.add_subcommand(entry.name, entry.help);
    add_view(app);
    subcommands_.push_back({app, nullptr, option_list(app_, *app, view_.ascii)});
    option_list& options = subcommands_.back().options;
    const auto is_color = [this](const char* color) { return view_.color == color; };
    options.refuse([=] { return !is_color("auto") && !is_color("always") && !is_color("never"); },
                   "--color: must be one of auto, always, never");
    options.refuse(
        [=, &options] { return is_color("always") && options.given("--json"); },
        "--color and --json contradict each other: JSON has no colour; leave one of them "
        "out");
    options.need({"--json-bits"}, "--json");
    subcommands_.back().run = entry.declare(options);
  }

  void add_shell_files() {
    app_.add_subcommand("completion", "Write the completion script of a shell")
        ->add_option("SHELL", shell_, "bash, zsh or fish")
        ->required();
    app_.add_subcommand("manual", "Write the manual page");
  }

  void parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(),
                 arguments.end());  // CLI11 expects the arguments in reverse order
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::ExtrasError&) {
      refuse_unexpected();
      throw;
    } catch (const CLI::RequiredError& error) {
      refuse_unexpected();  // for example --too instead of --to
      const auto chosen = app_.get_subcommands();
      if (chosen.empty()) throw usage_error("a subcommand is required: " + subcommand_names());
      throw usage_error(unmarked_message(
          cat(error.what(), "; `fpinspect ", chosen.front()->get_name(), " --help` says more")));
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string_view text = error.what();  // "--to: At Most 1 required but received 2"
      const bool too_many = text.find("received") != std::string_view::npos;
      const std::string option(text.substr(0, text.find(':')));
      throw usage_error(unmarked_message(option) +
                        (too_many ? ": is given more than once" : ": needs a value behind it"));
    }
  }

  [[nodiscard]] std::string subcommand_names() const {
    return joined(app_.get_subcommands({}), [](const CLI::App* one) { return one->get_name(); });
  }

  /// Checks for a subcommand. CLI11's own message would only say that one is missing.
  void check_subcommand(const std::vector<std::string>& arguments) const {
    if (arguments.front().starts_with('-')) return;
    for (const CLI::App* command : app_.get_subcommands({})) {
      if (arguments.front() == command->get_name()) return;
    }
    const std::string& text = arguments.front();
    const std::string message = unmarked_message(text) + " is not a subcommand; ";
    refuse_if(find_enumerator<function>(text).has_value(), message, "`fpinspect arith ", text,
              " X --rule RULE` computes it");
    std::string nearest;
    std::size_t fewest = text.size() < 4 ? 0 : text.size() < 6 ? 1 : 2;
    for (const CLI::App* command : app_.get_subcommands({})) {
      const auto edits = static_cast<std::size_t>(edits_between(text, command->get_name()));
      if (edits > fewest || (edits == fewest && !nearest.empty())) continue;
      fewest = edits;
      nearest = command->get_name();
    }
    if (!nearest.empty()) throw usage_error(message, "did you mean ", nearest, "?");
    throw usage_error(message + "there are: " + subcommand_names());
  }

  void refuse_empty_values() const {
    for (const CLI::App* app :
         {&app_, static_cast<const CLI::App*>(app_.get_subcommands().front())}) {
      for (const CLI::Option* option : app->get_options()) {
        const std::string name = option->get_name();
        if (option->get_positional() || name == "--tensor")
          continue;  // a tensor's name may be empty
        for (const std::string& value : option->results()) {
          if (value.empty())
            throw usage_error(name + ": the value is empty; leave it out or give one");
        }
      }
    }
  }

  /// Throws for the first argument that the parser did not use, if there is one.
  void refuse_unexpected() const {
    const CLI::App* app = &app_;
    if (!app_.get_subcommands().empty()) app = app_.get_subcommands().front();
    std::vector<std::string> unexpected = app->remaining();
    if (unexpected.empty()) unexpected = app_.remaining();
    if (unexpected.empty()) return;
    const std::string& first = unexpected.front();
    const bool is_option = first.starts_with('-');
    std::string known;
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional() == is_option) continue;
      known += (known.empty() ? "" : ", ") + option->get_name(option->get_positional());
    }
    const std::string shown = unmarked_message('"' + first + '"');
    const std::string name = app->get_name();
    if (is_option) throw usage_error(name, " has no option ", shown, "; it has ", known);
    std::string advice;
    if (app->get_option_no_throw("--to") != nullptr && find_format(first)) {
      advice = "; a format stands behind --to";
    }
    throw usage_error(shown, " is one argument too many: ", name, " takes ",
                      known.empty() ? "nothing but options" : known, advice);
  }

  CLI::App app_{"What low-precision floating-point formats do to numbers and tensors"};
  view_options view_;
  std::list<subcommand> subcommands_;
  std::string shell_;
};

}  // namespace

std::string unmarked_message(std::string text) {
  std::erase(text, value_mark);
  return escape_message(text);
}

void run_command_line(int argc, char** argv, output& out) {
  try {
    command_line().run(argc, argv, out);
  } catch (const CLI::Error& error) {
    throw usage_error(unmarked_message(error.what()));
  }
}

}  // namespace fpinspect
