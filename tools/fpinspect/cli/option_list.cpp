// The options of one subcommand: implementation.
#include "fpinspect/cli/option_list.hpp"

#include <CLI/CLI.hpp>

namespace fpinspect {

CLI::Option* option_list::add(CLI::Option* option) {
  if (!group_.empty()) option->group(group_);
  return option->transform(
      [](std::string text) { return text.starts_with(value_mark) ? text.substr(1) : text; });
}

template <class T, class Shape>
T& option_list::filled(const char* name, const std::string& help, const Shape& shape) {
  T& to = make<T>();
  shape(*add(command_.add_option(name, to, help)));
  return to;
}

std::string& option_list::required(const char* name, const std::string& help) {
  return filled<std::string>(name, help, [](CLI::Option& one) { one.required(); });
}

text_list& option_list::one_or_more(const char* name, const std::string& help) {
  return filled<text_list>(name, help, [](CLI::Option& one) { one.required(); });
}

text_list& option_list::any_number(const char* name, const std::string& help) {
  return filled<text_list>(name, help, [](CLI::Option&) {});
}

std::string& option_list::text(const char* name, const std::string& help, const char* standard) {
  std::string& to = make<std::string>() = standard;
  CLI::Option* const option = add(command_.add_option(name, to, help));
  if (!to.empty()) option->capture_default_str();
  return to;
}

text_list& option_list::list(const char* name, const std::string& help) {
  return filled<text_list>(name, help, [&](CLI::Option& one) {
    one.delimiter(',');
    if (*name == '-') one.allow_extra_args(false)->take_all();
  });
}

text_list& option_list::several(const char* name, const std::string& help) {
  return filled<text_list>(name, help, [](CLI::Option& one) { one.delimiter(',')->take_all(); });
}

text_list& option_list::repeated(const char* name, const std::string& help) {
  return filled<text_list>(name, help,
                           [](CLI::Option& one) { one.allow_extra_args(false)->take_all(); });
}

bool& option_list::flag(const char* name, const std::string& help) {
  bool& to = make<bool>();
  add(command_.add_flag(name, to, help));
  return to;
}

bool& option_list::ascii() {
  add(command_.add_flag("--ascii", ascii_, "Draw with ASCII characters"));
  return ascii_;
}

void option_list::exclude(const std::string& option, std::initializer_list<std::string> others) {
  for (const std::string& other : others) {
    refuse([=, this] { return given(option) && given(other); },
           cat(option, " and ", other, " contradict each other; leave one of them out"));
  }
}

void option_list::need(std::initializer_list<std::string> options,
                       const std::function<bool()>& holds, const std::string& what) {
  for (const std::string& option : options) {
    refuse([=, this] { return given(option) && !holds(); },
           cat(option, " does nothing without ", what, "; add that, or leave ", option, " out"));
  }
}

void option_list::refuse_json_beside(const std::string& output, const std::string& path) {
  refuse([this, &path] { return path == "-" && given("--json"); },
         cat("--json and ", output,
             " - contradict each other: both are for standard output; name a file"));
}

bool option_list::given(const std::string& option) const {
  for (const CLI::App* app : {static_cast<const CLI::App*>(&command_), &program_}) {
    const CLI::Option* found = app->get_option_no_throw(option);
    if (found != nullptr && found->count() != 0) return true;
  }
  return false;
}

bool option_list::is(const char* option, std::string_view text) const {
  const CLI::Option* const found = command_.get_option(option);
  return (found->count() == 0 ? found->get_default_str() : found->results().back()) == text;
}

void option_list::interpret() {
  for (const rule& one : rules_) {
    if (one.broken()) throw usage_error(one.message);
  }
  for (const auto& interpret_one : interpret_) interpret_one();
}

}  // namespace fpinspect
