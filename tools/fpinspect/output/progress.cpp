// The progress of a long run: implementation.
#include "fpinspect/output/progress.hpp"

#include <unistd.h>

#include <string>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/progress_text.hpp"

namespace fpinspect {
namespace {

using namespace std::chrono_literals;

/// Progress is a courtesy: an error of standard error is ignored.
void write_to_terminal(const std::string& text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

progress::progress(std::uint64_t bytes, std::uint64_t work)
    : bytes_(static_cast<double>(bytes)),
      work_(static_cast<double>(work)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(clock::now()),
      next_(start_ + 1s) {}

progress::~progress() {
  if (shown_) write_to_terminal("\r\x1b[K");
}

void progress::add(std::uint64_t work) {
  done_ += static_cast<double>(work);
  const clock::time_point now = clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + 200ms;
  shown_ = true;
  const std::chrono::duration<double> seconds = now - start_;
  write_to_terminal(cat("\r", progress_text(done_ / work_, bytes_, seconds.count()), "\x1b[K"));
}

}  // namespace fpinspect
