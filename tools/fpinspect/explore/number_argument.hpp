// Finite numbers of the command line.
#pragma once

#include <string_view>

namespace fpinspect {

/// Returns the binary64 value nearest to a finite number.
/// @throws usage_error  for any other text, for infinities and NaN, and for numbers that binary64
///   cannot hold
double number_argument(std::string_view option, std::string_view text);

/// A number with a factor behind it if the last letter is one of K, M, B and T (10^3, 10^6, 10^9,
/// 10^12), in upper or lower case: "350M", "7b".
double count_argument(std::string_view option, std::string_view text);

}  // namespace fpinspect
