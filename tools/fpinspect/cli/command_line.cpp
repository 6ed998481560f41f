// The parser: parts shared by all subcommands, and the errors of a command line.
#include "fpinspect/cli/command_line.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/help/shell_files.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/cli/text/parse.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/function.hpp"
#include "samebits/core/rounding.hpp"

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

}  // namespace

command_line::command_line() {
  app_.name("fpinspect");
  app_.require_subcommand(1);
  add_view(&app_);
  app_.set_version_flag("--version", "fpinspect " SAMEBITS_VERSION);
  app_.footer(
      "Numbers may be negative, decimal of any length, hexadecimal (0x1.8p3), inf, nan.\n"
      "Exit codes: 0 ok, 1 a check failed, 2 command line, 3 file, 4 backend.");
  add_formats();
  add_show();
  add_cast();
  add_convert();
  add_quantize();
  add_dequantize();
  add_recipes();
  add_diff();
  add_compare();
  add_tensor();
  add_report();
  add_scaler();
  add_arith();
  add_matmul();
  add_units();
  add_backends();
  add_verify();
  add_range();
  add_resolution();
  add_memory();
  add_demo();
  add_update();
  add_claims();
  add_table();
  add_advise();
  add_explorer();
  add_shell_files();
}

void command_line::run(int argc, char** argv, output& out) {
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
  check_rules();
  chosen_(out);
}

void command_line::add_view(CLI::App* command) {
  command->add_flag("--json", view_.json, "Write JSON");
  command->add_flag("--json-bits", view_.json_bits,
                    "With --json: the bits of each binary64 number beside it");
  command->add_option("--color", view_.color, "auto, always or never")->capture_default_str();
}

CLI::App* command_line::add(const char* name, const char* description) {
  CLI::App* command = app_.add_subcommand(name, description);
  add_view(command);
  const auto is_color = [this](const char* color) { return view_.color == color; };
  refuse(
      command, [=] { return !is_color("auto") && !is_color("always") && !is_color("never"); },
      "--color: must be one of auto, always, never");
  refuse(
      command, [=, this] { return is_color("always") && given(command, "--json"); },
      "--color and --json contradict each other: JSON has no colour; leave one of them out");
  need(
      command, {"--json-bits"}, [=, this] { return given(command, "--json"); }, "--json");
  return command;
}

void command_line::add_shell_files() {
  CLI::App* completion =
      app_.add_subcommand("completion", "Write the completion script of a shell");
  completion->add_option("SHELL", shell_, "bash, zsh or fish")->required();
  completion->callback([this] {
    chosen_ = [this](output& out) {
      if (shell_ == "bash") return out.write(bash_completion(app_));
      if (shell_ == "zsh") return out.write(zsh_completion(app_));
      if (shell_ == "fish") return out.write(fish_completion(app_));
      throw usage_error("SHELL: must be one of bash, zsh, fish");
    };
  });
  CLI::App* manual = app_.add_subcommand("manual", "Write the manual page");
  manual->callback([this] { chosen_ = [this](output& out) { out.write(manual_page(app_)); }; });
}

CLI::Option* command_line::add_list(CLI::App* command, const char* name,
                                    std::vector<std::string>& list, const char* description) {
  return command->add_option(name, list, description)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->take_all();
}

void command_line::add_rule(CLI::App* command, rule_options& rule) {
  const auto option = [&](const char* name, std::string& text, const std::string& description) {
    command->add_option(name, text, description)->capture_default_str()->group("Rule");
  };
  option("--round", rule.rounding, names_of<samebits::rounding>(" or "));
  option("--overflow", rule.overflow, names_of<samebits::overflow>(" or "));
  option("--nan", rule.nan, names_of<samebits::nan_policy>(" or "));
  option("--seed", rule.seed, "stochastic: key of the random bits, 64 bits");
  option("--stream", rule.stream, "stochastic: second half of their counter, 64 bits");
  option("--offset", rule.offset, "stochastic: index of the first element, 64 bits");
  option("--random-bits", rule.random_bits, "stochastic: random bits per element, 1 to 32");
  need(
      command, {"--seed", "--stream", "--offset", "--random-bits"},
      [&rule] { return rule.rounding == "stochastic"; }, "--round stochastic");
}

void command_line::refuse(const CLI::App* command, std::function<bool()> broken,
                          std::string message) {
  rules_.push_back({command, std::move(broken), std::move(message)});
}

void command_line::exclude(const CLI::App* command, const std::string& option,
                           std::initializer_list<std::string> others) {
  for (const std::string& other : others) {
    refuse(
        command, [=, this] { return given(command, option) && given(command, other); },
        cat(option, " and ", other, " contradict each other; leave one of them out"));
  }
}

void command_line::need(const CLI::App* command, std::initializer_list<std::string> options,
                        const std::function<bool()>& holds, const std::string& what) {
  for (const std::string& option : options) {
    refuse(
        command, [=, this] { return given(command, option) && !holds(); },
        cat(option, " does nothing without ", what, "; add that, or leave ", option, " out"));
  }
}

void command_line::refuse_json_beside(const CLI::App* command, const std::string& output,
                                      const std::string& path) {
  refuse(
      command, [=, this, &path] { return path == "-" && given(command, "--json"); },
      cat("--json and ", output,
          " - contradict each other: both are for standard output; name a file"));
}

bool command_line::given(const CLI::App* command, const std::string& option) const {
  for (const CLI::App* app : {command, &app_}) {
    const CLI::Option* found = app->get_option_no_throw(option);
    if (found != nullptr && found->count() != 0) return true;
  }
  return false;
}

void command_line::parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects the arguments in reverse order
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

std::string command_line::subcommand_names() const {
  std::string names;
  for (const CLI::App* command : app_.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

void command_line::check_subcommand(const std::vector<std::string>& arguments) const {
  if (arguments.front().starts_with('-')) return;
  for (const CLI::App* command : app_.get_subcommands({})) {
    if (arguments.front() == command->get_name()) return;
  }
  const std::string& text = arguments.front();
  const std::string message = unmarked_message(text) + " is not a subcommand; ";
  if (samebits::find_enumerator<samebits::function>(text)) {
    throw usage_error(cat(message, "`fpinspect arith ", text, " X --rule RULE` computes it"));
  }
  std::string nearest;
  std::size_t fewest = text.size() < 4 ? 0 : text.size() < 6 ? 1 : 2;
  for (const CLI::App* command : app_.get_subcommands({})) {
    const auto edits = static_cast<std::size_t>(edits_between(text, command->get_name()));
    if (edits > fewest || (edits == fewest && !nearest.empty())) continue;
    fewest = edits;
    nearest = command->get_name();
  }
  if (!nearest.empty()) throw usage_error(cat(message, "did you mean ", nearest, "?"));
  throw usage_error(message + "there are: " + subcommand_names());
}

void command_line::check_rules() const {
  const CLI::App* const command = app_.get_subcommands().front();
  for (const CLI::App* app : {&app_, command}) {
    for (const CLI::Option* option : app->get_options()) {
      const std::string name = option->get_name();
      if (option->get_positional() || name == "--tensor") continue;  // a tensor's name may be empty
      for (const std::string& value : option->results()) {
        if (value.empty())
          throw usage_error(name + ": the value is empty; leave it out or give one");
      }
    }
  }
  for (const option_rule& rule : rules_) {
    if (rule.command == command && rule.broken()) throw usage_error(rule.message);
  }
}

void command_line::refuse_unexpected() const {
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
  if (is_option) throw usage_error(cat(name, " has no option ", shown, "; it has ", known));
  std::string advice;
  if (app->get_option_no_throw("--to") != nullptr && samebits::find_format(first)) {
    advice = "; a format stands behind --to";
  }
  throw usage_error(cat(shown, " is one argument too many: ", name, " takes ",
                        known.empty() ? "nothing but options" : known, advice));
}

void run_command_line(int argc, char** argv, output& out) {
  try {
    command_line().run(argc, argv, out);
  } catch (const CLI::Error& error) {
    throw usage_error(unmarked_message(error.what()));
  }
}

}  // namespace fpinspect
