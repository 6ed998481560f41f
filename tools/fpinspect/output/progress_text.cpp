// The text of the line that says how far a long run is: implementation.
#include "fpinspect/output/progress_text.hpp"

#include <cmath>

#include "fpinspect/cli/text/text.hpp"

namespace fpinspect {
namespace {

/// "4.0 GB", "250 MB"
std::string bytes_text(double bytes) {
  constexpr double giga = 1e9;
  constexpr double mega = 1e6;
  return bytes < giga ? fixed(bytes / mega, 0) + " MB" : fixed(bytes / giga, 1) + " GB";
}

/// "6 s", "2 min"
std::string time_text(double seconds) {
  constexpr double long_time = 100;
  constexpr double minute = 60;
  return seconds < long_time ? fixed(std::ceil(seconds), 0) + " s"
                             : fixed(std::ceil(seconds / minute), 0) + " min";
}

}  // namespace

std::string progress_text(double share, double bytes, double seconds) {
  constexpr double giga = 1e9;
  std::string text = cat(fixed(std::floor(100 * share), 0), " % of ", bytes_text(bytes), "   ",
                         fixed(share * bytes / seconds / giga, 2), " GB/s");
  if (share > 0) text += cat("   ", time_text(seconds / share - seconds), " left");
  return text;
}

}  // namespace fpinspect
