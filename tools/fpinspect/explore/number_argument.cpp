// Finite numbers of the command line: implementation.
#include "fpinspect/explore/number_argument.hpp"

#include <cmath>
#include <string>

#include "fpinspect/cli/error.hpp"
#include "samebits/text.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {

double number_argument(std::string_view option, std::string_view text) {
  const samebits::parse_result parsed = samebits::parse(samebits::format_id::fp64, text);
  const auto value = __builtin_bit_cast(double, parsed.code);
  if (!parsed.ok || !std::isfinite(value)) {
    throw usage_error(std::string(option) + ": " + samebits::tensor_file::quote(text) +
                      " is not a finite number");
  }
  return value;
}

double count_argument(std::string_view option, std::string_view text) {
  constexpr std::string_view letters = "KMBTkmbt";
  const std::size_t letter = text.empty() ? letters.npos : letters.find(text.back());
  if (letter == letters.npos) return number_argument(option, text);
  const double factors[] = {1e3, 1e6, 1e9, 1e12};
  const double number = number_argument(option, text.substr(0, text.size() - 1));
  return number * factors[letter % 4];
}

}  // namespace fpinspect
