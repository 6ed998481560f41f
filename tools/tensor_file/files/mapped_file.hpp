// A regular file, mapped read-only for as long as the object lives.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace samebits::tensor_file {

/// The bytes stay those of the file that was opened even if another one is renamed to its path. A
/// file that another process shortens meanwhile ends the program on access (SIGBUS), as with any
/// mapping.
class mapped_file {
 public:
  /// Throws file_error: missing, or unreadable for everything else. The message leaves out the
  /// path.
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
