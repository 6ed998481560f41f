// Tensors that subcommands write: the extension of OUT selects the file format, - is standard
// output.
#pragma once

#include "fpinspect/cli/files.hpp"
#include "fpinspect/tensors/source/source.hpp"

namespace fpinspect {

/// In the order of the extensions of tensor_target.
enum class container : std::uint8_t { npy, safetensors };

/// The destination of tensors.
class tensor_target {
 public:
  /// @param option  the argument's name in errors: "OUT"
  /// @param path  FILE.npy, FILE.safetensors, or - for standard output
  /// @param preferred  the file format on standard output
  /// @throws usage_error  as output_file does, and if standard output is a terminal
  tensor_target(std::string_view option, std::string path, container preferred = container::npy);

  [[nodiscard]] bool is_standard_output() const { return file_.is_standard_output(); }
  [[nodiscard]] container kind() const { return kind_; }
  /// The path, as messages show it.
  [[nodiscard]] std::string shown() const { return file_.shown(); }

  /// The element type for codes of the format: the format's own type if the file format has it,
  /// else unsigned integers.
  [[nodiscard]] dtype element_type(format_id format) const;
  /// The name of this type in the file: "<f2", "|u1", "BF16".
  [[nodiscard]] std::string type_text(dtype type) const;

  /// Throws usage_error if `count` elements of less than a byte do not fill their last byte.
  void require_packable(format_id format, std::uint64_t count) const;

  /// Writes one tensor of codes. The name appears only in .safetensors files. Throws file_error and
  /// output_error.
  void write(const std::string& name, format_id format, std::span<const std::uint64_t> shape,
             std::span<const std::byte> codes, output& out) const;
  /// Writes one tensor whose elements already are in the file's representation.
  void write(const std::string& name, dtype type, std::span<const std::uint64_t> shape,
             std::span<const std::byte> data, output& out) const;

  /// Writes several tensors; .safetensors only.
  void write(std::span<const named_tensor> tensors,
             std::span<const std::pair<std::string, std::string>> metadata, output& out) const;

 private:
  std::string option_;
  output_file file_;
  container kind_;
};

}  // namespace fpinspect
