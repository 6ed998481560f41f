// Option values and positional arguments: converts text to values.
#pragma once

#include "fpinspect/cli/option_list.hpp"
#include "samebits/backend.hpp"
#include "samebits/convert.hpp"

namespace fpinspect {

// All functions throw usage_error; the message names `option` and what is accepted. Those with the
// parameters `option` and `text` alone, or that return a function of them, are parsers of options.

/// Throws the message OPTION: "TEXT" WHY.
template <class... Parts>
[[noreturn]] void refuse_value(std::string_view option, std::string_view text,
                               const Parts&... why) {
  throw usage_error(option, ": ", quote(text), " ", why...);
}
template <class... Parts>
void refuse_value_if(bool is_wrong, std::string_view option, std::string_view text,
                     const Parts&... why) {
  if (is_wrong) refuse_value(option, text, why...);
}
/// Throws for a text that is not one of the names.
[[noreturn]] inline void refuse_name(std::string_view option, std::string_view text,
                                     std::string_view names) {
  refuse_value(option, text, "is not one of ", names);
}

/// The row of a table whose member `name` is `text`.
template <class Row>
const Row& row_argument(std::string_view option, std::string_view text,
                        std::span<const Row> table) {
  for (const Row& row : table) {
    if (row.name == text) return row;
  }
  refuse_name(option, text, joined(table, [](const Row& row) { return row.name; }));
}

/// The value in `among` for which name(value) is `text`.
template <class Value>
Value value_argument(std::string_view option, std::string_view text, std::span<const Value> among) {
  for (const Value value : among) {
    if (name(value) == text) return value;
  }
  refuse_name(option, text, joined(among, [](Value value) { return name(value); }));
}

/// The enumerator with the name `text`.
template <listed_enum Enum>
Enum enumerator_argument(std::string_view option, std::string_view text) {
  return row_argument<enum_row<Enum>>(option, text, table_of<Enum>).value;
}

/// The names of an enum: "a, b, c", or "a, b or c" with " or " before the last one.
template <listed_enum Enum>
std::string names_of(std::string_view before_last = ", ") {
  const auto& rows = table_of<Enum>;
  const auto row_name = [](const enum_row<Enum>& row) { return row.name; };
  return cat(joined(std::span(rows).first(rows.size() - 1), row_name), before_last,
             rows.back().name);
}

/// Adds an option that takes the name of an enumerator. Help says `before`, and all names.
template <listed_enum Enum>
Enum& add_enumerator(option_list& add, const char* name, Enum& to, const char* standard,
                     std::string_view before = "") {
  return add.fill(name, to, enumerator_argument<Enum>, cat(before, names_of<Enum>(" or ")),
                  standard);
}
template <listed_enum Enum>
Enum& add_enumerator(option_list& add, const char* name, const char* standard,
                     std::string_view before = "") {
  return add_enumerator(add, name, add.make<Enum>(), standard, before);
}

/// All formats.
std::vector<format_id> all_formats();
/// One of the formats in `among`.
format_id format_among(std::string_view option, std::string_view text,
                       std::span<const format_id> among);
inline format_id format_argument(std::string_view option, std::string_view text) {
  return format_among(option, text, all_formats());
}
/// The parser of one of these formats.
inline auto one_of(std::vector<format_id> among) {
  return [among = std::move(among)](std::string_view option, std::string_view text) {
    return format_among(option, text, among);
  };
}
/// The formats in the given order, without duplicates.
std::vector<format_id> format_list_argument(std::string_view option,
                                            const std::vector<std::string>& texts);

/// Parses a decimal number, or a hexadecimal number after 0x; no sign and no spaces.
std::uint64_t unsigned_argument(std::string_view option, std::string_view text,
                                std::uint64_t minimum = 0,
                                std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max());
/// The parser of such numbers in a range.
inline auto integer(std::uint64_t minimum = 0,
                    std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max()) {
  return [=](std::string_view option, std::string_view text) {
    return unsigned_argument(option, text, minimum, maximum);
  };
}

/// The binary64 value nearest to a finite number. Refuses infinities, NaN, and numbers that binary64
/// cannot hold.
double number_argument(std::string_view option, std::string_view text);
double positive_argument(std::string_view option, std::string_view text);
/// A number above 0, with a factor behind it if the last letter is one of K, M, B and T (10^3, 10^6,
/// 10^9, 10^12), in upper or lower case: "350M", "7b".
double count_argument(std::string_view option, std::string_view text);

/// Adds the options of a rounding rule, in the contract's terms.
/// @param overflow  the default of --overflow
convert_options& add_rounding_rule(option_list& add, const char* overflow = "ieee");

/// The code of a text 0xCODE with hexadecimal digits only that fits the format's storage; nothing
/// for any other text. "0x10" is a code, "0x1p4" and "0x10.0" are not.
std::optional<std::uint64_t> code_argument(format_id format, std::string_view text);

/// The executor with this name, or the default executor for an empty name, on all hardware threads.
/// @throws backend_error  if the backend is unknown or not supported
executor backend_argument(std::string_view name);
/// The default executor with its number of threads, at least 1.
executor all_threads();
/// Like backend_argument(), for host memory.
/// @throws backend_error  also for a backend that works on device memory
executor host_backend_argument(std::string_view name);

}  // namespace fpinspect
