// Which reader a file is for, by its first bytes and then by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace samebits::tensor_file {

enum class file_format : std::uint8_t { npy, safetensors };

/// file_name is the last part of the path; its extension decides where the content does not.
/// Throws file_error (unsupported) for other formats, saying how to convert those that are known.
file_format detect_format(std::span<const std::byte> file, std::string_view file_name);

}  // namespace samebits::tensor_file
