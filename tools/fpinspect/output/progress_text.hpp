// The text of the line that says how far a long run is.
#pragma once

#include <string>

namespace fpinspect {

/// "34 % of 4.0 GB   0.48 GB/s   6 s left"
///
/// @param share  of the work that is done, 0 .. 1
/// @param bytes  of the files that are read
/// @param seconds  since the start, above 0
std::string progress_text(double share, double bytes, double seconds);

}  // namespace fpinspect
