// Writes .npy and .safetensors files for tests, by the parts that fpinspect writes them with.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/files/staged_file.hpp"
#include "tensor_file/npy/npy.hpp"
#include "tensor_file/safetensors/safetensors.hpp"

namespace samebits::tensor_file::testing {

/// Throws file_error (unwritable) if the file cannot be written; then `path` is unchanged.
inline void write_npy(const std::filesystem::path& path, dtype type,
                      std::span<const std::uint64_t> shape, std::span<const std::byte> data) {
  const std::string start = npy_start(type, shape, data);
  in_context(escape_path(path), [&] {
    staged_file file(path);
    file.write(std::as_bytes(std::span(start)));
    file.write(data);
    file.commit();
  });
}

inline void write_safetensors(const std::filesystem::path& path,
                              std::span<const named_tensor> tensors,
                              std::span<const std::pair<std::string, std::string>> metadata = {}) {
  const std::string start = safetensors_start(tensors, metadata);
  in_context(escape_path(path), [&] {
    staged_file file(path);
    file.write(std::as_bytes(std::span(start)));
    for (const named_tensor& tensor : tensors) file.write(tensor.data);
    file.commit();
  });
}

}  // namespace samebits::tensor_file::testing
