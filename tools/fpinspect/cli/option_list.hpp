// The options and positional arguments of one subcommand.
#pragma once

#include <any>
#include <initializer_list>
#include <list>
#include <type_traits>

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

using text_list = std::vector<std::string>;

/// The value that a parser of texts, or of lists of texts, returns.
template <class Parse, class... Texts>
using parsed = std::remove_cvref_t<std::invoke_result_t<Parse, Texts...>>;

/// Declares options and fills them. Each function returns the value, which is filled when the
/// subcommand runs, or fills the member `to`. A parser is a function of the option's name and the
/// text; it throws usage_error. Parsers run in the order of the options, after the rules were checked.
///
/// Names of positional arguments have no dashes. `help` is what --help says.
class option_list {
  template <class Parse>
  using parsed_text = parsed<Parse, std::string_view, std::string_view>;
  template <class Parse>
  using parsed_list = parsed<Parse, const text_list&>;

 public:
  /// @param program  has the options that may stand before the subcommand's name
  option_list(const CLI::App& program, CLI::App& command, bool& ascii)
      : program_(program), command_(command), ascii_(ascii) {}

  /// A value that lives as long as the list.
  template <class T>
  T& make() {
    return *std::any_cast<T>(&values_.emplace_back(std::in_place_type<T>));
  }
  /// An option or argument that must be given.
  std::string& required(const char* name, const std::string& help);
  template <class Parse>
  auto& required(const char* name, Parse parse, const std::string& help) {
    return later(name, make<parsed_text<Parse>>(), required(name, help), parse);
  }
  /// Positional arguments.
  text_list& one_or_more(const char* name, const std::string& help);
  text_list& any_number(const char* name, const std::string& help);

  /// An option with a text, by default `standard`, which help shows unless it is empty.
  std::string& text(const char* name, const std::string& help, const char* standard = "");
  /// An option with a value. Without `standard`, the text of its default, the value stays as it is.
  template <class T, class Parse>
  T& fill(const char* name, T& to, Parse parse, const std::string& help,
          const char* standard = "") {
    return later(name, to, text(name, help, standard), parse);
  }
  template <class Parse>
  auto& value(const char* name, Parse parse, const std::string& help, const char* standard = "") {
    return fill(name, make<parsed_text<Parse>>(), parse, help, standard);
  }
  /// Nothing if the option is not given.
  template <class Parse>
  auto& optional_value(const char* name, Parse parse, const std::string& help) {
    return fill(name, make<std::optional<parsed_text<Parse>>>(), parse, help);
  }

  /// Comma-separated texts; an option may be repeated.
  text_list& list(const char* name, const std::string& help);
  /// parse(texts) also runs if there are none.
  template <class Parse>
  auto& list(const char* name, Parse parse, const std::string& help) {
    return later(make<parsed_list<Parse>>(), list(name, help), parse);
  }
  /// Comma-separated texts, of which several may follow one option.
  text_list& several(const char* name, const std::string& help);
  /// Texts that may contain commas: the option is repeated.
  text_list& repeated(const char* name, const std::string& help);
  template <class Parse>
  auto& repeated(const char* name, Parse parse, const std::string& help) {
    return later(make<parsed_list<Parse>>(), repeated(name, help), parse);
  }
  bool& flag(const char* name, const std::string& help);
  /// --ascii.
  bool& ascii();
  /// Puts the following options under a heading of their own in help.
  option_list& group(const char* heading) {
    group_ = heading;
    return *this;
  }

  /// Refuses a command line if `broken` returns true.
  void refuse(std::function<bool()> broken, std::string message) {
    rules_.push_back({std::move(broken), std::move(message)});
  }
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
  /// An option that fills a new value.
  template <class T, class Shape>
  T& filled(const char* name, const std::string& help, const Shape& shape);
  /// Parses the text, unless the option is not given and has no default.
  template <class T, class Parse>
  T& later(const char* name, T& to, const std::string& text, Parse parse) {
    interpret_.emplace_back([=, this, &to, &text] {
      if (!text.empty() || given(name)) to = static_cast<T>(parse(name, text));
    });
    return to;
  }
  template <class T, class Parse>
  T& later(T& to, const std::vector<std::string>& texts, Parse parse) {
    interpret_.emplace_back([=, &to, &texts] { to = parse(texts); });
    return to;
  }

  const CLI::App& program_;
  CLI::App& command_;
  bool& ascii_;
  std::string group_;
  std::list<std::any> values_;
  std::vector<std::function<void()>> interpret_;
  std::vector<rule> rules_;
};

}  // namespace fpinspect
