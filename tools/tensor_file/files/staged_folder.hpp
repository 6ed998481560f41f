// An output folder of files that appears completely or not at all: written beside its target, then
// renamed.
#pragma once

#include "tensor_file/common.hpp"

namespace samebits::tensor_file {

/// A new name for what is not committed yet; short, so that it fits wherever the target's name fits.
[[nodiscard]] std::string staged_name();

/// Until commit() the target is untouched. The destructor removes a folder that was not committed.
/// One folder at a time. Every function throws file_error (unwritable); the message omits the path.
class staged_folder {
 public:
  /// Creates an empty folder beside the target, which is a folder or does not exist.
  explicit staged_folder(std::filesystem::path target);
  ~staged_folder();
  staged_folder(const staged_folder&) = delete;
  staged_folder& operator=(const staged_folder&) = delete;
  staged_folder(staged_folder&&) = delete;
  staged_folder& operator=(staged_folder&&) = delete;

  /// The folder into which the files are written, without folders of their own.
  [[nodiscard]] const std::filesystem::path& path() const { return staged_; }
  /// Renames the folder to the target. An existing target takes its place in the same step, and is
  /// then removed with everything in it.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path staged_;
};

/// Removes the folder of the staged_folder that is not committed. A signal handler may call this
/// function.
void remove_unfinished_folder() noexcept;

}  // namespace samebits::tensor_file
