// The options and positional arguments of one subcommand.
#pragma once

#include <initializer_list>
#include <list>

#include "fpinspect/common.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fpinspect {

/// CLI11 takes "-inf", "-.5" and "-#weight" for options and fails on "--" inside a subcommand. An
/// argument that is certainly a value is therefore prefixed with this character, with which no
/// option starts.
inline constexpr char value_mark = '\x01';

/// Fills the members of a subcommand. A parser is a function of the option's name and the text; it
/// throws usage_error. Parsers run in the order of the options, after the rules were checked.
///
/// Names of positional arguments have no dashes. `help` is what --help says.
class option_list {
 public:
  /// @param program  has the options that may stand before the subcommand's name
  option_list(const CLI::App& program, CLI::App& command, bool& ascii)
      : program_(program), command_(command), ascii_(ascii) {}

  /// An option or argument that must be given.
  void required(const char* name, std::string& to, const std::string& help);
  template <class T, class Parse>
  void required(const char* name, T& to, Parse parse, const std::string& help) {
    required(name, new_text(), help);
    later(name, to, parse);
  }
  /// One or more positional arguments.
  void required(const char* name, std::vector<std::string>& to, const std::string& help);
  /// Any number of positional arguments.
  void optional(const char* name, std::vector<std::string>& to, const std::string& help);

  /// An option with a text. The member's value is the default, which help shows unless it is empty.
  void text(const char* name, std::string& to, const std::string& help);
  /// An option with a value. Without `standard`, the text of its default, the member keeps its own.
  template <class T, class Parse>
  void value(const char* name, T& to, Parse parse, const std::string& help,
             const char* standard = "") {
    text(name, new_text(standard), help);
    later(name, to, parse);
  }

  /// Comma-separated texts; an option may be repeated.
  void list(const char* name, std::vector<std::string>& to, const std::string& help);
  /// parse(texts) also runs if there are none.
  template <class T, class Parse>
  void list(const char* name, T& to, Parse parse, const std::string& help) {
    list(name, lists_.emplace_back(), help);
    later(to, parse);
  }
  /// Comma-separated texts, of which several may follow one option.
  void several(const char* name, std::vector<std::string>& to, const std::string& help);
  /// Texts that may contain commas: the option is repeated.
  void repeated(const char* name, std::vector<std::string>& to, const std::string& help);
  template <class T, class Parse>
  void repeated(const char* name, T& to, Parse parse, const std::string& help) {
    repeated(name, lists_.emplace_back(), help);
    later(to, parse);
  }
  void flag(const char* name, bool& to, const std::string& help);
  /// --ascii.
  void ascii();
  /// Puts the following options under a heading of their own in help.
  void group(const char* heading) { group_ = heading; }

  /// Refuses a command line if `broken` returns true.
  void refuse(std::function<bool()> broken, std::string message);
  /// Refuses the option together with any of the others.
  void exclude(const std::string& option, std::initializer_list<std::string> others);
  /// Refuses the options unless `holds` returns true. `what` describes the condition.
  void need(std::initializer_list<std::string> options, const std::function<bool()>& holds,
            const std::string& what);
  /// Refuses the options without another one.
  void need(std::initializer_list<std::string> options, const std::string& other) {
    need(
        options, [this, other] { return given(other); }, other);
  }
  /// Refuses --json together with an output called "-": standard output takes only one of them.
  void refuse_json_beside(const std::string& output, const std::string& path);

  /// Whether an option was given, before or after the subcommand's name.
  [[nodiscard]] bool given(const std::string& option) const;
  /// Whether the text of an option, or its default, is `text`.
  [[nodiscard]] bool is(const char* option, std::string_view text) const;

  /// Checks the rules, then parses the values. Called once, after the command line is parsed.
  void interpret();

 private:
  struct rule {
    std::function<bool()> broken;
    std::string message;
  };

  CLI::Option* add(CLI::Option* option);
  std::string& new_text(const char* standard = "") { return texts_.emplace_back(standard); }
  /// Parses the newest text, unless the option is not given and has no default.
  template <class T, class Parse>
  void later(const char* name, T& to, Parse parse) {
    interpret_.emplace_back([=, this, &to, &text = texts_.back()] {
      if (!text.empty() || given(name)) to = static_cast<T>(parse(name, text));
    });
  }
  /// Parses the newest list.
  template <class T, class Parse>
  void later(T& to, Parse parse) {
    interpret_.emplace_back([=, &to, &texts = lists_.back()] { to = parse(texts); });
  }

  const CLI::App& program_;
  CLI::App& command_;
  bool& ascii_;
  std::string group_;
  // Of options whose members are not texts.
  std::list<std::string> texts_;
  std::list<std::vector<std::string>> lists_;
  std::vector<std::function<void()>> interpret_;
  std::vector<rule> rules_;
};

}  // namespace fpinspect
