// Tensors that subcommands write: the extension of OUT says the file format, - is standard output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/output/output.hpp"
#include "samebits/core/format.hpp"
#include "tensor_file/safetensors/safetensors.hpp"

namespace fpinspect {

enum class container : std::uint8_t { npy, safetensors };

/// Where tensors go.
class tensor_target {
 public:
  /// option    what the argument is called in errors: "OUT"
  /// path      FILE.npy, FILE.safetensors, or - for standard output
  /// preferred the format on standard output
  ///
  /// Throws usage_error for any other extension, and where standard output is a terminal.
  tensor_target(std::string_view option, std::string path, container preferred = container::npy);

  [[nodiscard]] bool is_standard_output() const { return path_ == "-"; }
  [[nodiscard]] container kind() const { return kind_; }
  /// The path as messages show it.
  [[nodiscard]] std::string shown() const;

  /// The element type that codes of the format get: their own where the file format has it, else
  /// unsigned integers.
  [[nodiscard]] samebits::tensor_file::dtype element_type(samebits::format_id format) const;
  /// The name of that type in the file: "<f2", "|u1", "BF16".
  [[nodiscard]] std::string type_text(samebits::tensor_file::dtype type) const;

  /// Throws usage_error where that many elements below a byte do not fill their last byte.
  void require_packable(samebits::format_id format, std::uint64_t count) const;

  /// Writes one tensor of codes; the name shows in .safetensors files only. Throws file_error and
  /// output_error.
  void write(const std::string& name, samebits::format_id format,
             std::span<const std::uint64_t> shape, std::span<const std::byte> codes,
             output& out) const;
  /// The same, of elements as the file holds them.
  void write(const std::string& name, samebits::tensor_file::dtype type,
             std::span<const std::uint64_t> shape, std::span<const std::byte> data,
             output& out) const;

  /// Several tensors; .safetensors only.
  void write(std::span<const samebits::tensor_file::named_tensor> tensors,
             std::span<const std::pair<std::string, std::string>> metadata, output& out) const;

 private:
  std::string option_;
  std::string path_;
  container kind_;
};

}  // namespace fpinspect
