// An output file that appears whole or not at all: written beside its target, then renamed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "tensor_file/files/descriptor.hpp"

namespace samebits::tensor_file {

/// Every function throws file_error (unwritable) without the path in its message. Until commit()
/// has renamed the file the target is untouched; the destructor removes what was not committed.
class staged_file {
 public:
  /// Creates an empty file of a new name in the target's folder. A target that exists must be a
  /// regular file, whose permissions the new file gets (not its owner, ACL or attributes); a
  /// symbolic link is replaced by commit(), not followed.
  explicit staged_file(std::filesystem::path target);
  ~staged_file();
  staged_file(const staged_file&) = delete;
  staged_file& operator=(const staged_file&) = delete;
  staged_file(staged_file&&) = delete;
  staged_file& operator=(staged_file&&) = delete;

  void write(std::span<const std::byte> bytes);
  /// Data and name are on the disk when this returns: the file is synchronized before it is
  /// renamed, its folder afterwards.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path staged_;
  descriptor file_;
};

}  // namespace samebits::tensor_file
