// Standard output or standard error: implementation.
#include "fpinspect/output/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "fpinspect/cli/error.hpp"

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

}  // namespace fpinspect
