// Files that subcommands read and write. No output may be a file that the subcommand reads.
#pragma once

#include <initializer_list>

#include "fpinspect/output/output.hpp"
#include "tensor_file/files/staged_folder.hpp"

namespace samebits::tensor_file {
class staged_file;
}

namespace fpinspect {

using tensor_file::staged_file;

/// Must be called with every file that a subcommand reads, before it is read; "-" is standard input.
/// open_file() and read_text_file() do so.
/// @throws usage_error  if the file is an output, by device and inode
void note_input(const std::filesystem::path& path);

/// Requires that no input was shortened after note_input(). Reading a mapped file beyond its new end
/// raises SIGBUS, but not in its last page, which reads as zeros there.
/// @throws file_error
void require_whole_inputs();

/// Refuses what a file holds, or what a line of it holds: PATH: WHAT, or PATH, line LINE: WHAT.
/// @throws file_error  always
template <class... Parts>
[[noreturn]] void refuse_content(const std::filesystem::path& path, const Parts&... what) {
  tensor_file::malformed(escape_path(path), ": ", what...);
}
template <class... Parts>
void refuse_content_if(bool is_wrong, const std::filesystem::path& path, const Parts&... what) {
  if (is_wrong) refuse_content(path, what...);
}
[[noreturn]] inline void refuse_line(const std::filesystem::path& path, std::size_t line,
                                     std::string_view what) {
  tensor_file::malformed(escape_path(path), ", line ", line, ": ", what);
}

/// The bytes of a file; "-" is standard input. Throws file_error.
std::string read_text_file(const std::string& path);

/// A file that a subcommand writes, as an argument names it; "-" is standard output. All files of
/// fpinspect are written by this class.
class output_file {
 public:
  /// @param option  the argument's name in errors: "OUT"
  /// @param extensions  what the name may end in, in upper or lower case: {".npy"}
  /// @throws usage_error  for any other extension, and for a file that is an input or another
  ///   output, by device and inode
  output_file(std::string_view option, std::string path,
              std::initializer_list<std::string_view> extensions);

  [[nodiscard]] bool is_standard_output() const { return path_ == "-"; }
  /// The index of the extension; 0 for standard output.
  [[nodiscard]] std::size_t extension() const { return extension_; }
  /// The path, as messages show it.
  [[nodiscard]] std::string shown() const {
    return is_standard_output() ? "standard output" : escape_path(path_);
  }

  /// Writes the complete content, to standard output through `out`. A file appears completely or
  /// not at all. Throws file_error and output_error.
  void write(std::initializer_list<std::string_view> parts, output& out) const {
    write(std::span(parts.begin(), parts.size()), out);
  }
  void write(std::span<const std::string_view> parts, output& out) const;

 private:
  std::string path_;
  std::size_t extension_ = 0;
};

/// Files of tensors that a subcommand writes: FILE.safetensors, or a folder. The output appears
/// completely or not at all.
class output_checkpoint {
 public:
  /// @param option  the argument's name in errors: "-o"
  /// @param one_file  whether all tensors are in one file, which may then be the output itself
  /// @throws usage_error  for a file if there are several, for a folder that contains an input or
  ///   anything but files of a model
  output_checkpoint(std::string_view option, const std::string& path, bool one_file);
  ~output_checkpoint();

  [[nodiscard]] bool is_folder() const { return folder_ != nullptr; }
  [[nodiscard]] std::string shown() const { return escape_path(path_); }

  /// Writes one file.
  /// @param name  in the folder; not used for an output that is a file
  /// @param fill  fill(file) writes the content; file has write() and write_at()
  void write(const std::string& name, const std::function<void(staged_file&)>& fill);
  /// Call after the last file.
  void commit();

 private:
  std::filesystem::path path_;
  std::unique_ptr<tensor_file::staged_folder> folder_;
};

/// The files beside the tensors of a model: configuration, tokenizer and the like. None for a path
/// that is no folder.
std::vector<std::filesystem::path> model_texts_in(const std::filesystem::path& folder);

}  // namespace fpinspect
