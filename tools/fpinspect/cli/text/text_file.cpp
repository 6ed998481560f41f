// Reads and writes text files.
#include "fpinspect/cli/text/text_file.hpp"

#include <array>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/files/staged_file.hpp"

namespace fpinspect {

std::string read_text_file(const std::string& path) {
  std::string text;
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  const std::string shown = samebits::tensor_file::escape_path(path);
  if (!file)
    throw samebits::tensor_file::file_error(samebits::tensor_file::error_kind::missing,
                                            shown + ": cannot be opened");
  std::array<char, 1 << 16> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof())
    throw samebits::tensor_file::file_error(samebits::tensor_file::error_kind::unreadable,
                                            shown + ": cannot be read");
  return text;
}

void write_text_file(const std::string& path, const std::string& text) {
  try {
    samebits::tensor_file::staged_file file(path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  } catch (const samebits::tensor_file::file_error& error) {
    throw samebits::tensor_file::file_error(
        error.kind(), samebits::tensor_file::escape_path(path) + ": " + error.what());
  }
}

}  // namespace fpinspect
