// The tensors that `tensor` and `report` read: from one or many files, all or those that --tensor
// names; what text calls them, and statistics of their elements.
#pragma once

#include "fpinspect/cli/option_list.hpp"
#include "fpinspect/tensors/source/source.hpp"

namespace fpinspect {

// --- The tensors that `tensor` and `report` read -------------------------------------------------

/// A tensor that a subcommand shows. `how`, format() and read() mean something only if
/// has_numbers().
struct shown_tensor : source_tensor {
  std::filesystem::path path;  ///< of the file
  std::string note = {};       ///< why its elements are not interpreted; empty if they are

  [[nodiscard]] bool has_numbers() const { return note.empty(); }
  /// The name, escaped for a terminal; the escaped path for a tensor without a name.
  [[nodiscard]] std::string title() const {
    return info.name.empty() ? shown_path(path) : escape(info.name, 256);
  }
  /// The name to guess from and to match: that of the file, without extension, if the tensor has
  /// none.
  [[nodiscard]] std::string plain_name() const {
    return info.name.empty() ? path.stem().string() : info.name;
  }
};

/// The tensors that a subcommand is asked for.
struct tensor_selection {
  std::vector<std::string> files;
  std::vector<std::string> tensors;  ///< names or patterns; empty: all
  std::string from;                  ///< integers are codes of this format; empty: values
};

/// The options of a selection.
inline std::vector<std::string>& add_files(option_list& add) {
  return add.one_or_more("FILE",
                         "FILE.npy, .npz, .safetensors, .gguf or .pt, an index (.index.json), a "
                         "folder, FILE#TENSOR, or -");
}
inline std::vector<std::string>& add_tensors(option_list& add) {
  return add.repeated("--tensor", "Only this tensor, or those of a pattern such as '*.bias'");
}
inline std::string& add_from(option_list& add) {
  return add.text("--from", "Integers are codes of this format (default: values)");
}

/// Opens the files and chooses the tensors, in the order of the files and of their data, or in that
/// of --tensor.
///
/// @throws usage_error  if --from or --tensor contradicts the files, or a pattern matches nothing
/// @throws file_error  if a file cannot be read or has no such tensor
std::vector<shown_tensor> tensors_to_show(const tensor_selection& wanted);

// --- How `tensor` and `report` name files and tensors, and match names ---------------------------

/// The tensors' names in the verdict: FILE#NAME if there are several files, FILE with as few
/// of its last folders as tell all files apart.
std::vector<std::string> names_of(const std::vector<shown_tensor>& tensors);

/// The path of the only file, or "3 files".
std::string heading_of(const std::vector<shown_tensor>& tensors);
/// "3 tensors, 4096 values, 2 not read"
std::string size_text(std::span<const shown_tensor> tensors);
/// Bytes of the tensors that have numbers.
inline std::uint64_t bytes_to_read(std::span<const shown_tensor> tensors) {
  std::uint64_t bytes = 0;
  for (const shown_tensor& tensor : tensors) bytes += tensor.has_numbers() ? tensor.info.bytes : 0;
  return bytes;
}

/// Refuses a pattern that matches no tensor.
/// @throws usage_error  the message names `option`
void require_match(const char* option, const std::string& pattern,
                   const std::vector<shown_tensor>& tensors);

// --- Statistics of elements ----------------------------------------------------------------------

/// Reads the elements as often as the request needs; elements that the file holds in place are not
/// copied. The statistics do not depend on the executor, whose threads must be >= 1.
cast_statistics statistics_of(const shown_tensor& tensor, statistics_request request,
                              const executor& where);

/// Whether the tensor is a matrix with elements, and with at most this many columns.
inline bool has_columns(const tensor_info& info, std::uint64_t most) {
  return info.shape.size() >= 2 && info.count != 0 && info.shape.back() <= most;
}

}  // namespace fpinspect
