// A regular file, mapped read-only for the lifetime of the object, or a copy of a stream.
#pragma once

#include "tensor_file/common.hpp"

namespace samebits::tensor_file {

/// Maps a file. If another file is renamed to the path, the bytes stay those of the opened file. If
/// another process shortens the file, an access raises SIGBUS, as with any mapping; a handler can
/// name the file by mapped_name().
class mapped_file {
 public:
  /// @throws file_error  `missing` if there is no file, else `unreadable`; the message omits the
  ///   path
  explicit mapped_file(const std::filesystem::path& path);
  /// An open file, which stays open. A regular file is mapped, anything else is read to its end into
  /// memory.
  /// @param shown  its name for mapped_name()
  /// @throws file_error  `unreadable`
  mapped_file(int descriptor, std::string shown);
  ~mapped_file();
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  /// Aligned to 16 bytes; empty for an empty file.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (start_ == nullptr) return copy_;
    return {static_cast<const std::byte*>(start_), size_};
  }

 private:
  void map(int descriptor, std::size_t size, std::string shown);

  std::vector<std::byte> copy_;
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

/// The name of the mapped_file to which the address belongs, escaped for messages; null if there is
/// none. A signal handler may call this function.
const char* mapped_name(const void* address) noexcept;

}  // namespace samebits::tensor_file
