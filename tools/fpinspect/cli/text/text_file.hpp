// Reads and writes complete text files.
#pragma once

#include <string>

namespace fpinspect {

/// The bytes of a file; "-" is standard input. Throws file_error.
std::string read_text_file(const std::string& path);

/// Creates a file, or replaces all of its content. Throws file_error.
void write_text_file(const std::string& path, const std::string& text);

}  // namespace fpinspect
