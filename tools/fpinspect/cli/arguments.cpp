// Option values and positional arguments: implementation.
#include "fpinspect/cli/arguments.hpp"

#include <charconv>
#include <thread>

#include "samebits/core/rounding.hpp"
#include "samebits/error.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

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

/// The text without the letter of a factor behind it, with an exponent in its place.
std::string with_exponent(std::string_view text) {
  constexpr std::string_view letters = "KMBTkmbt";
  constexpr std::string_view factors[] = {"e3", "e6", "e9", "e12"};
  const std::size_t letter = text.empty() ? letters.npos : letters.find(text.back());
  const bool has_exponent = text.find_first_of("eExX") != letters.npos;  // 0xb: a hexadecimal digit
  if (letter == letters.npos || has_exponent) return std::string(text);
  const std::string product = cat(text.substr(0, text.size() - 1), factors[letter % 4]);
  return parse(format_id::fp64, product).ok ? product : std::string(text);
}

}  // namespace

std::vector<format_id> all_formats() {
  std::vector<format_id> all;
  for (int i = 0; i < format_count; ++i) all.push_back(format_at(i));
  return all;
}

format_id format_among(std::string_view option, std::string_view text,
                       std::span<const format_id> among) {
  const auto found = find_format(text);
  if (found && contains(among, *found)) return *found;
  refuse_name(option, text, joined(among, [](format_id format) { return name(format); }));
}

std::vector<format_id> format_list_argument(std::string_view option,
                                            const std::vector<std::string>& texts) {
  std::vector<format_id> formats;
  for (const std::string& text : texts) add_once(formats, format_argument(option, text));
  return formats;
}

std::uint64_t unsigned_argument(std::string_view option, std::string_view text,
                                std::uint64_t minimum, std::uint64_t maximum) {
  const auto number =
      has_hex_prefix(text) ? read_integer(text.substr(2), 16) : read_integer(text, 10);
  refuse_value_if(!number || *number < minimum || *number > maximum, option, text,
                  "is not an integer from ", minimum, " to ", maximum, ", in decimal or after 0x");
  return *number;
}

double number_argument(std::string_view option, std::string_view text) {
  const parse_result parsed = parse(format_id::fp64, text);
  const auto value = __builtin_bit_cast(double, parsed.code);
  if (!parsed.ok || !std::isfinite(value)) refuse_value(option, text, "is not a finite number");
  return value;
}

double positive_argument(std::string_view option, std::string_view text) {
  const double number = number_argument(option, text);
  if (!(number > 0)) refuse_value(option, text, "is not above 0");
  return number;
}

double count_argument(std::string_view option, std::string_view text) {
  const double number = number_argument(option, with_exponent(text));
  if (!(number > 0)) refuse_value(option, text, "is not above 0");
  return number;
}

convert_options& add_rounding_rule(option_list& add, const char* overflow) {
  auto& rule = add.make<convert_options>();
  add.group("Rule");
  add_enumerator(add, "--rounding", rule.rounding, "nearest_even");
  add_enumerator(add, "--overflow", rule.overflow, overflow);
  add_enumerator(add, "--nan", rule.nan, "canonical");
  add.fill("--seed", rule.random.seed, integer(), "stochastic: key of the random bits, 64 bits",
           "0");
  add.fill("--stream", rule.random.stream, integer(),
           "stochastic: second half of their counter, 64 bits", "0");
  add.fill("--offset", rule.random.offset, integer(),
           "stochastic: index of the first element, 64 bits", "0");
  add.fill("--random-bits", rule.random.bits, integer(1, 32),
           "stochastic: random bits per element, 1 to 32", "32");
  add.group("");
  add.need(
      {"--seed", "--stream", "--offset", "--random-bits"},
      [&add] { return add.is("--rounding", "stochastic"); }, "--rounding stochastic");
  return rule;
}

std::optional<std::uint64_t> code_argument(format_id format, std::string_view text) {
  if (!has_hex_prefix(text)) return std::nullopt;
  const std::string_view digits = text.substr(2);
  if (digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) return std::nullopt;
  const auto code = read_integer(digits, 16);
  const int bits = spec_of(format).storage_bits;
  refuse_if(!code || (bits < 64 && (*code >> bits) != 0), "code ", quote(text),
            " has more than the ", bits, " bits of ", format);
  return code;
}

executor backend_argument(std::string_view name) {
  constexpr int hardware_threads = 0;
  try {
    return name.empty() ? default_executor(hardware_threads)
                        : find_executor(name, hardware_threads);
  } catch (const invalid_argument& error) {
    throw backend_error(escape_message(error.what()));
  } catch (const unsupported& error) {
    throw backend_error(escape_message(error.what()));
  }
}

executor all_threads() {
  executor where = backend_argument("");
  where.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return where;
}

executor host_backend_argument(std::string_view name) {
  const executor where = backend_argument(name);
  // The default is of the host. The list below asks what the GPU can run, which takes 0.3 s.
  if (name.empty()) return where;
  for (const backend_info& backend : compiled_backends()) {
    if (backend.name == where.backend && backend.space != memory_space::host) {
      throw backend_error("backend '" + std::string(backend.name) +
                          "' works on device memory; files are read into host memory");
    }
  }
  return where;
}

}  // namespace fpinspect
