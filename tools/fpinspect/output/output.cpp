// Standard output or standard error, and the terminal behind it: implementation.
#include "fpinspect/output/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <system_error>

namespace fpinspect {

void output::write(std::string_view text) {
  constexpr std::size_t enough = 1 << 16;
  waiting_ += text;
  if (waiting_.size() >= enough) flush();
}

void output::flush() {
  const std::string text = std::exchange(waiting_, {});
  for (std::string_view rest = text; !rest.empty();) {
    const ::ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    const std::string message =
        (descriptor_ == STDOUT_FILENO ? "standard output: " : "standard error: ") +
        std::generic_category().message(errno);
    if (errno == EPIPE) throw closed_pipe(message);
    throw output_error(message);
  }
}

namespace {

std::string_view environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : text;
}

bool wants_color(std::string_view choice) {
  if (choice == "always") return true;
  if (choice == "never") return false;
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

std::span<const std::string_view> level_marks(charset characters) {
  static constexpr std::string_view eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::string_view thirds[] = {" ", ".", ":", "#"};
  if (characters == charset::unicode) return eighths;
  return thirds;
}

terminal::terminal(const view_options& options)
    : characters_(options.ascii ? charset::ascii : charset::unicode),
      color_(wants_color(options.color)),
      width_(std::clamp(columns(), 40, 200)) {}

std::string terminal::painted(paint how, std::string_view text) const {
  if (!color_) return std::string(text);
  return std::string(sequence(how)) + std::string(text) + "\x1b[0m";
}

}  // namespace fpinspect
