// Whole text files, in and out.
#pragma once

#include <string>

namespace fpinspect {

/// The bytes of a file, of standard input for "-". Throws file_error.
std::string read_text_file(const std::string& path);

/// Creates or replaces a file as a whole. Throws file_error.
void write_text_file(const std::string& path, const std::string& text);

}  // namespace fpinspect
