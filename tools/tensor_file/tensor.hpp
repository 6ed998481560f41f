// An open tensor file: its tensors and their elements.
#pragma once

#include "tensor_file/files/mapped_file.hpp"
#include "tensor_file/tensor_info.hpp"
#include "tensor_file/zip/zip.hpp"

namespace samebits::tensor_file {

enum class file_format : std::uint8_t { npy, npz, safetensors, gguf, torch };

/// Maps the file and keeps it mapped; only pages that are read are loaded. Several threads may call
/// const member functions at once.
class tensor_file {
 public:
  /// Opens a file and reads its header. The format is detected by content, then by name.
  /// @throws file_error  the message begins with the path
  static tensor_file open(const std::filesystem::path& path);

  /// Reads an open file, which stays open; anything but a regular file is copied into memory. Its
  /// content alone decides the format.
  /// @param shown  its name in messages
  /// @throws file_error  the message begins with `shown`
  static tensor_file open(int descriptor, std::string_view shown);

  [[nodiscard]] file_format format() const noexcept { return format_; }

  /// The path, escaped for messages.
  [[nodiscard]] const std::string& shown_path() const noexcept { return path_; }

  /// All tensors in the order of their data; in .npz files in that of the directory, in PyTorch's
  /// files in that of the pickle. A .npy file has one tensor, with an empty name.
  [[nodiscard]] const std::vector<tensor_info>& tensors() const noexcept {
    return contents_.tensors;
  }

  /// The pairs of __metadata__, sorted by key; empty for other files than .safetensors.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& metadata() const noexcept {
    return contents_.metadata;
  }

  /// Finds a tensor by name.
  /// @throws file_error  (no_such_tensor) with a list of the file's tensors
  [[nodiscard]] const tensor_info& find(std::string_view name) const;

  // The functions below check a member of a zip archive, and decompress it, when they first read it.
  // They throw file_error, whose message begins with the path, if that fails, or if the elements
  // of the tensor are not read (info.unread).

  /// The bytes of the file from the first element of the tensor to its last one; valid for the
  /// lifetime of this object.
  [[nodiscard]] std::span<const std::byte> bytes(const tensor_info& info) const;

  /// Writes the codes of elements [first, first + count) to `out`: numbered in C order of the
  /// shape, little-endian, unpacked. See codes.hpp.
  /// @param out  count * code_bytes(info.type) bytes; needs no alignment
  void read_codes(const tensor_info& info, std::uint64_t first, std::uint64_t count,
                  std::byte* out) const;

  /// The tensor's bytes in place, if read_codes() would only copy them and they are aligned for
  /// their element type. Otherwise nothing.
  [[nodiscard]] std::optional<std::span<const std::byte>> view_codes(const tensor_info& info) const;

 private:
  tensor_file(mapped_file file, std::string path);

  void read_header(std::string_view file_name);
  /// What info.offset counts in: the file, or the data of a member.
  [[nodiscard]] std::span<const std::byte> part_of(const tensor_info& info) const;

  mapped_file file_;
  std::string path_;  // escaped, for messages
  file_format format_ = file_format::npy;
  file_contents contents_;  // without members
  std::unique_ptr<zip_members> members_;
};

}  // namespace samebits::tensor_file
