// Text of unknown origin made fit for one line of a message.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace samebits::tensor_file {

/// Printable characters stay; quotes and backslashes get a backslash; control characters, invalid
/// UTF-8 and characters that break or reorder a line become \xNN, byte by byte. What would exceed
/// `limit` bytes is cut at a character and marked with "...". The result is valid UTF-8.
std::string escape(std::string_view text, std::size_t limit = 80);

/// A finished sentence that may hold text of unknown origin: quotes and backslashes stay as they
/// are, all else is as in escape().
std::string escape_message(std::string_view text, std::size_t limit = 2000);

/// As escape(), between double quotes.
std::string quote(std::string_view text);

/// A path without quotes, cut only where no file system would take it.
std::string escape_path(const std::filesystem::path& path);

}  // namespace samebits::tensor_file
