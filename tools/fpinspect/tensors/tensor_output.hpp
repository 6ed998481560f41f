// Tensors that subcommands write: the extension of OUT selects the file format, - is standard
// output.
#pragma once

#include <unistd.h>

#include "fpinspect/cli/files.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "tensor_file/codes.hpp"
#include "tensor_file/npy/npy.hpp"
#include "tensor_file/tensor_size.hpp"

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
  tensor_target(std::string_view option, std::string path, container preferred = container::npy)
      : option_(option),
        file_(option, std::move(path), {".npy", ".safetensors"}),
        kind_(file_.is_standard_output() ? preferred : static_cast<container>(file_.extension())) {
    refuse_if(file_.is_standard_output() && ::isatty(STDOUT_FILENO) == 1, option,
              ": standard output is a terminal; name a file, or redirect it: > FILE");
  }

  [[nodiscard]] bool is_standard_output() const { return file_.is_standard_output(); }
  [[nodiscard]] container kind() const { return kind_; }
  /// The path, as messages show it.
  [[nodiscard]] std::string shown() const { return file_.shown(); }

  /// The element type for codes of the format: the format's own type if the file format has it,
  /// else unsigned integers.
  [[nodiscard]] dtype element_type(format_id format) const {
    const dtype own = own_type(format);
    if (kind_ == container::safetensors) return own;
    if (!std::string_view(tensor_file::spec_of(own).npy).empty()) return own;
    return storage_bytes(format) == 1 ? dtype::u8 : dtype::u16;
  }
  /// The name of this type in the file: "<f2", "|u1", "BF16".
  [[nodiscard]] std::string type_text(dtype type) const {
    if (kind_ == container::safetensors) return std::string(tensor_file::name(type));
    const tensor_file::dtype_spec spec = tensor_file::spec_of(type);
    // A single byte has no byte order.
    return (spec.component_bytes == 1 ? "|" : "<") + std::string(spec.npy);
  }

  /// Throws usage_error if `count` elements of less than a byte do not fill their last byte.
  void require_packable(format_id format, std::uint64_t count) const {
    const dtype type = element_type(format);
    const auto bits = static_cast<std::uint64_t>(tensor_file::spec_of(type).bits);
    if (count % 8 * bits % 8 == 0) return;
    throw usage_error(option_, ": ", number_of(count, "element"), " of ", tensor_file::name(type),
                      " fill no whole number of bytes; a .npy file holds a byte for each");
  }

  /// Writes one tensor of codes. The name appears only in .safetensors files. Throws file_error and
  /// output_error.
  void write(const std::string& name, format_id format, std::span<const std::uint64_t> shape,
             std::span<const std::byte> codes, output& out) const {
    const dtype type = element_type(format);
    if (tensor_file::spec_of(type).bits >= 8) return write(name, type, shape, codes, out);
    write(name, type, shape, tensor_file::pack_codes(type, codes), out);
  }
  /// Writes one tensor whose elements already are in the file's representation.
  void write(const std::string& name, dtype type, std::span<const std::uint64_t> shape,
             std::span<const std::byte> data, output& out) const {
    if (kind_ == container::safetensors) {
      const named_tensor tensor = {name, type, {shape.begin(), shape.end()}, data};
      return write(std::span(&tensor, 1), {}, out);
    }
    file_.write({tensor_file::npy_start(type, shape, data), tensor_file::text_of(data)}, out);
  }

  /// Writes several tensors; .safetensors only.
  void write(std::span<const named_tensor> tensors,
             std::span<const std::pair<std::string, std::string>> metadata, output& out) const {
    const std::string start = tensor_file::safetensors_start(tensors, metadata);
    std::vector<std::string_view> parts = {start};
    for (const named_tensor& tensor : tensors) parts.push_back(tensor_file::text_of(tensor.data));
    file_.write(parts, out);
  }

 private:
  std::string option_;
  output_file file_;
  container kind_;
};

}  // namespace fpinspect
