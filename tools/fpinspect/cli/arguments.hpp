// Option values and positional arguments: converts text to values.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/options.hpp"
#include "samebits/backend.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace fpinspect {

// All functions throw usage_error; the message names `option` and the accepted values.

samebits::format_id format_argument(std::string_view option, std::string_view text);
/// One of the formats in `among`.
samebits::format_id format_argument(std::string_view option, std::string_view text,
                                    std::span<const samebits::format_id> among);

/// The formats in the given order, without duplicates.
std::vector<samebits::format_id> format_list_argument(std::string_view option,
                                                      const std::vector<std::string>& texts);

samebits::tensor_unit unit_argument(std::string_view option, std::string_view text);

/// Parses a decimal number, or a hexadecimal number after 0x; no sign and no spaces.
std::uint64_t unsigned_argument(std::string_view option, std::string_view text,
                                std::uint64_t minimum = 0,
                                std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max());

samebits::convert_options rule_argument(const rule_options& options);

/// The code of a text 0xCODE with hexadecimal digits only that fits the format's storage; nothing
/// for any other text. "0x10" is a code, "0x1p4" and "0x10.0" are not.
std::optional<std::uint64_t> code_argument(samebits::format_id format, std::string_view text);

/// The executor with this name, or the default executor for an empty name, on all hardware threads.
/// @throws backend_error  if the backend is unknown or not supported
samebits::executor backend_argument(std::string_view name);

/// Like backend_argument(), for host memory.
/// @throws backend_error  also for a backend that works on device memory
samebits::executor host_backend_argument(std::string_view name);

}  // namespace fpinspect
