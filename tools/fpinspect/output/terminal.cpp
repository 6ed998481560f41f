// Capabilities of the terminal: implementation.
#include "fpinspect/output/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "fpinspect/cli/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

std::string_view environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : text;
}

bool wants_color(std::string_view choice) {
  if (choice == "always") return true;
  if (choice == "never") return false;
  if (choice != "auto") {
    throw usage_error("--color: " + samebits::tensor_file::quote(choice) +
                      " is not one of auto, always, never");
  }
  const bool refused = !environment("NO_COLOR").empty() || environment("TERM") == "dumb";
  return !refused && ::isatty(STDOUT_FILENO) == 1;
}

int columns() {
  ::winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const std::string_view text = environment("COLUMNS");
  int count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count > 0 ? count : 80;
}

std::string_view sequence(paint how) {
  switch (how) {  // ECMA-48, SGR
    case paint::heading: return "\x1b[1m";
    case paint::good: return "\x1b[32m";
    case paint::caution: return "\x1b[33m";
    case paint::bad: return "\x1b[31m";
    case paint::faint: return "\x1b[2m";
  }
  return "";
}

}  // namespace

terminal::terminal(const view_options& options)
    : characters_(options.ascii ? charset::ascii : charset::unicode),
      color_(wants_color(options.color)),
      width_(std::clamp(columns(), 40, 200)) {}

std::string terminal::painted(paint how, std::string_view text) const {
  if (!color_) return std::string(text);
  return std::string(sequence(how)) + std::string(text) + "\x1b[0m";
}

}  // namespace fpinspect
