// An output file that appears completely or not at all: written next to its target, then renamed.
#pragma once

#include "tensor_file/common.hpp"
#include "tensor_file/files/descriptor.hpp"

namespace samebits::tensor_file {

/// Until commit() renames the file, the target is untouched. The destructor removes a file that was
/// not committed. Every function throws file_error (unwritable); the message omits the path.
class staged_file {
 public:
  /// Creates an empty file with a new name in the target's folder. An existing target must be a
  /// regular file. The new file gets its permissions, but not its owner, ACL or attributes. If the
  /// target is a symbolic link, the file behind the link is the target.
  explicit staged_file(std::filesystem::path target);
  ~staged_file();
  staged_file(const staged_file&) = delete;
  staged_file& operator=(const staged_file&) = delete;
  staged_file(staged_file&&) = delete;
  staged_file& operator=(staged_file&&) = delete;

  void write(std::span<const std::byte> bytes);
  /// Writes at a position, whatever write() has written. Several threads may call it at once.
  void write_at(std::uint64_t position, std::span<const std::byte> bytes);
  /// Renames the file to the target. Data and name are on the disk when commit() returns: it
  /// synchronizes the file before the renaming and the folder after it.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path staged_;
  descriptor file_;
  std::uint64_t position_ = 0;  ///< of the next write()
};

/// Removes the file of the staged_file that was begun last, unless that file is committed, and the
/// folder of the staged_folder. A signal handler that ends the process may call this function.
void remove_unfinished_file() noexcept;

}  // namespace samebits::tensor_file
