// Option values that are one of several names: implementation.
#include "fpinspect/cli/named_argument.hpp"

#include <string>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {

std::size_t name_index(std::string_view option, std::string_view text,
                       std::span<const std::string_view> names) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return i;
    all += cat(i == 0 ? "" : ", ", names[i]);
  }
  throw usage_error(cat(option, ": ", samebits::tensor_file::quote(text), " is not one of ", all));
}

}  // namespace fpinspect
