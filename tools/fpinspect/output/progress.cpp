// The progress of a long run: implementation.
#include "fpinspect/output/progress.hpp"

#include <unistd.h>

#include <string>

#include "fpinspect/cli/text.hpp"

namespace fpinspect {
namespace {

/// Progress is a courtesy: an error of standard error is ignored.
void write_to_terminal(const std::string& text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

progress::progress(std::size_t total)
    : total_(total),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

progress::~progress() {
  if (shown_) write_to_terminal("\r\x1b[K");
}

void progress::show(std::size_t done) {
  using namespace std::chrono_literals;
  if (!terminal_ || std::chrono::steady_clock::now() - start_ < 1s) return;
  shown_ = true;
  write_to_terminal(cat("\r", done, " of ", total_, " tensors"));
}

}  // namespace fpinspect
