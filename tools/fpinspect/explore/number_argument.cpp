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

}  // namespace fpinspect
