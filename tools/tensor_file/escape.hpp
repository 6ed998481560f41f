// Escapes text from unknown sources for one line of a message.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace samebits::tensor_file {

/// Printable characters stay. Quotes and backslashes get a backslash. Control characters, invalid
/// UTF-8 and characters that break or reorder a line become \xNN, byte by byte. Text beyond `limit`
/// bytes is cut at a character and replaced by "...". The result is valid UTF-8.
std::string escape(std::string_view text, std::size_t limit = 80);

/// Escapes a complete sentence that may contain text from unknown sources. Quotes and backslashes
/// stay; everything else is as in escape().
std::string escape_message(std::string_view text, std::size_t limit = 2000);

/// escape() with double quotes around the result.
std::string quote(std::string_view text);

/// A part of a message: quote() of the text, computed when the message is put together.
struct quoted {
  std::string_view text;
};
inline void append_text(std::string& message, const quoted& part) { message += quote(part.text); }

/// Escapes a path, without quotes. Cuts only paths that are too long for any file system.
std::string escape_path(const std::filesystem::path& path);

}  // namespace samebits::tensor_file
