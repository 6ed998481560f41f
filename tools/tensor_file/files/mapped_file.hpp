// A regular file, mapped read-only for the lifetime of the object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace samebits::tensor_file {

/// Maps a file. If another file is renamed to the path, the bytes stay those of the opened file. If
/// another process shortens the file, an access ends the program (SIGBUS), as with any mapping.
class mapped_file {
 public:
  /// @throws file_error  `missing` if there is no file, else `unreadable`; the message omits the
  ///   path
  explicit mapped_file(const std::filesystem::path& path);
  ~mapped_file();
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  /// Starts at a page boundary; empty for an empty file.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(start_), size_};
  }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace samebits::tensor_file
