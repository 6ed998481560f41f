// Detects the format of a file by its first bytes and then by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace samebits::tensor_file {

enum class file_format : std::uint8_t { npy, npz, safetensors, gguf, torch };

/// Returns the format of a file.
/// @param file_name  last part of the path; its extension decides if the content does not
/// @throws file_error  (unsupported) for other formats; for known ones the message says how to
///   convert
file_format detect_format(std::span<const std::byte> file, std::string_view file_name);

}  // namespace samebits::tensor_file
