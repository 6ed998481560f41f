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
  const bool hexadecimal =
      text.find_first_of("xX") != std::string_view::npos;  // its digits have a b
  const std::size_t letter =
      text.empty() || hexadecimal ? std::string_view::npos : letters.find(text.back());
  if (letter == std::string_view::npos) return number_argument(option, text);
  constexpr std::string_view factors[] = {"e3", "e6", "e9", "e12"};
  const std::string_view number = text.substr(0, text.size() - 1);
  const bool has_exponent = number.find_first_of("eE") != std::string_view::npos;
  const std::string product = std::string(number) + std::string(factors[letter % 4]);
  const samebits::parse_result parsed = samebits::parse(samebits::format_id::fp64, product);
  if (has_exponent || !parsed.ok) return number_argument(option, text);  // refuses the whole text
  return number_argument(option, product);
}

}  // namespace fpinspect
