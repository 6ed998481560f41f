// A tensor file, opened: what tensors it holds and their elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor_file/detect.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/files/mapped_file.hpp"
#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// Maps the file and keeps it mapped; only the pages that are read come into memory. Const member
/// functions may be called from several threads at once.
class tensor_file {
 public:
  /// Reads the header; content decides between .npy and .safetensors, then the name.
  /// Throws file_error with the path at the head of its message.
  static tensor_file open(const std::filesystem::path& path);

  [[nodiscard]] file_format format() const noexcept { return format_; }

  /// In the order of their data. A .npy file has one, with an empty name.
  [[nodiscard]] const std::vector<tensor_info>& tensors() const noexcept { return tensors_; }

  /// The pairs of __metadata__, sorted by key; empty for .npy.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& metadata() const noexcept {
    return metadata_;
  }

  /// Throws file_error (no_such_tensor) that lists what the file holds.
  [[nodiscard]] const tensor_info& find(std::string_view name) const;

  /// The data as it lies in the file; valid as long as this object.
  [[nodiscard]] std::span<const std::byte> bytes(const tensor_info& info) const;

  /// Codes of elements [first, first + count), numbered in C order of the shape, little endian and
  /// unpacked, to out: count * code_bytes(info.type) bytes, no alignment needed. See codes.hpp.
  void read_codes(const tensor_info& info, std::uint64_t first, std::uint64_t count,
                  std::byte* out) const;

  /// The data itself where read_codes would only copy it and it is aligned for its element type.
  [[nodiscard]] std::optional<std::span<const std::byte>> view_codes(const tensor_info& info) const;

 private:
  tensor_file(mapped_file file, std::string path);

  mapped_file file_;
  std::string path_;  // escaped, for messages
  file_format format_ = file_format::npy;
  std::vector<tensor_info> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace samebits::tensor_file
