// A line on a terminal's standard error that says how far a long run is: implementation.
#include "fpinspect/output/progress.hpp"

#include <unistd.h>

namespace fpinspect {
namespace {

/// "6 s", "2 min"
std::string time_text(double seconds) {
  constexpr double long_time = 100;
  constexpr double minute = 60;
  return seconds < long_time ? fixed(std::ceil(seconds), 0) + " s"
                             : fixed(std::ceil(seconds / minute), 0) + " min";
}

using namespace std::chrono_literals;

/// Progress is a courtesy: an error of standard error is ignored.
void write_to_terminal(const std::string& text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr double giga = 1e9;
  constexpr double mega = 1e6;
  constexpr double kilo = 1e3;
  const auto in = [&](double unit) { return fixed(bytes / unit, bytes < 10 * unit ? 1 : 0); };
  if (bytes < kilo) return fixed(bytes, 0) + " bytes";
  if (bytes < mega) return in(kilo) + " kB";
  return bytes < giga ? in(mega) + " MB" : fixed(bytes / giga, 1) + " GB";
}

std::string progress_text(double share, double bytes, double seconds) {
  constexpr double giga = 1e9;
  std::string text = cat(fixed(std::floor(100 * share), 0), " % of ", bytes_text(bytes), "   ",
                         fixed(share * bytes / seconds / giga, 2), " GB/s");
  if (share > 0) text += cat("   ", time_text(seconds / share - seconds), " left");
  return text;
}

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
