// Option values and positional arguments: implementation.
#include "fpinspect/cli/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::tensor_file::quote;

[[noreturn]] void refuse(std::string_view option, std::string_view text, const std::string& why) {
  throw usage_error(std::string(option) + ": " + quote(text) + " " + why);
}

bool has_hex_prefix(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

/// Parses all of `digits` as a 64-bit integer.
std::optional<std::uint64_t> read_integer(std::string_view digits, int base) {
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

samebits::format_id format_argument(std::string_view option, std::string_view text) {
  std::vector<samebits::format_id> all;
  for (int i = 0; i < samebits::format_count; ++i) all.push_back(samebits::format_at(i));
  return format_argument(option, text, all);
}

samebits::format_id format_argument(std::string_view option, std::string_view text,
                                    std::span<const samebits::format_id> among) {
  const auto found = samebits::find_format(text);
  std::string names;
  for (const samebits::format_id format : among) {
    if (found == format) return format;
    names += (names.empty() ? "" : ", ") + std::string(samebits::name(format));
  }
  refuse(option, text, "is not one of " + names);
}

std::vector<samebits::format_id> format_list_argument(std::string_view option,
                                                      const std::vector<std::string>& texts) {
  std::vector<samebits::format_id> formats;
  for (const std::string& text : texts) {
    const samebits::format_id format = format_argument(option, text);
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) {
      formats.push_back(format);
    }
  }
  return formats;
}

std::uint64_t unsigned_argument(std::string_view option, std::string_view text,
                                std::uint64_t minimum, std::uint64_t maximum) {
  const auto number =
      has_hex_prefix(text) ? read_integer(text.substr(2), 16) : read_integer(text, 10);
  if (!number || *number < minimum || *number > maximum) {
    refuse(option, text,
           "is not an integer from " + std::to_string(minimum) + " to " + std::to_string(maximum) +
               ", in decimal or after 0x");
  }
  return *number;
}

samebits::convert_options rule_argument(const rule_options& options) {
  samebits::convert_options rule;
  rule.rounding = enumerator_argument<samebits::rounding>("--round", options.rounding);
  rule.overflow = enumerator_argument<samebits::overflow>("--overflow", options.overflow);
  rule.nan = enumerator_argument<samebits::nan_policy>("--nan", options.nan);
  rule.random.seed = unsigned_argument("--seed", options.seed);
  rule.random.stream = unsigned_argument("--stream", options.stream);
  rule.random.offset = unsigned_argument("--offset", options.offset);
  rule.random.bits =
      static_cast<int>(unsigned_argument("--random-bits", options.random_bits, 1, 32));
  return rule;
}

std::optional<std::uint64_t> code_argument(samebits::format_id format, std::string_view text) {
  const auto is_hex_digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  if (!has_hex_prefix(text)) return std::nullopt;
  const std::string_view digits = text.substr(2);
  if (!std::all_of(digits.begin(), digits.end(), is_hex_digit)) return std::nullopt;
  const auto code = read_integer(digits, 16);
  const int bits = samebits::spec_of(format).storage_bits;
  if (!code || (bits < 64 && (*code >> bits) != 0)) {
    throw usage_error("code " + quote(text) + " has more than the " + std::to_string(bits) +
                      " bits of " + std::string(samebits::name(format)));
  }
  return code;
}

samebits::executor backend_argument(std::string_view name) {
  constexpr int hardware_threads = 0;
  try {
    return name.empty() ? samebits::default_executor(hardware_threads)
                        : samebits::find_executor(name, hardware_threads);
  } catch (const samebits::invalid_argument& error) {
    throw backend_error(samebits::tensor_file::escape_message(error.what()));
  } catch (const samebits::unsupported& error) {
    throw backend_error(samebits::tensor_file::escape_message(error.what()));
  }
}

samebits::tensor_unit unit_argument(std::string_view option, std::string_view text) {
  return enumerator_argument<samebits::tensor_unit>(option, text);
}

samebits::executor host_backend_argument(std::string_view name) {
  const samebits::executor where = backend_argument(name);
  for (const samebits::backend_info& backend : samebits::compiled_backends()) {
    if (backend.name == where.backend && backend.space != samebits::memory_space::host) {
      throw backend_error("backend '" + std::string(backend.name) +
                          "' works on device memory; files are read into host memory");
    }
  }
  return where;
}

}  // namespace fpinspect
