// Tensors that subcommands read: FILE or FILE#TENSOR, and the interpretation of their elements.
#pragma once

#include "fpinspect/common.hpp"
#include "samebits/backend.hpp"
#include "samebits/cast_statistics.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"
#include "tensor_file/safetensors/safetensors.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

using tensor_file::dtype;
using tensor_file::named_tensor;
using tensor_file::tensor_info;
using tensor_reader = tensor_file::tensor_file;

/// What help says of an argument that names a tensor.
inline constexpr const char tensor_help[] =
    "FILE.npy, .npz, .safetensors, .gguf or .pt, FILE#TENSOR, or -";

/// FILE and TENSOR of an argument.
struct tensor_location {
  std::filesystem::path file;
  std::optional<std::string> tensor;
};

/// Opens a file; - is standard input. All tensors of fpinspect are read through this function.
///
/// @throws usage_error  if standard input is a terminal, or was read already, or if the file is an
///   output
std::shared_ptr<const tensor_reader> open_file(const std::filesystem::path& path);

/// The path, as messages show it.
inline std::string shown_path(const std::filesystem::path& path) {
  return path == "-" ? "standard input" : escape_path(path);
}

/// Splits at the last #, unless a file has the whole of `input` as its name.
tensor_location locate(const std::string& input);

/// Whether an argument that is not a number names a file: - for standard input, by its extension, or
/// because the file exists.
bool names_a_file(const std::string& input);

/// How the elements of a tensor are interpreted: as codes of `format`, or as integer values.
/// Integer values are converted to codes of `format`, which holds them exactly (fp32 up to 16 bits,
/// else fp64).
struct element_reading {
  format_id format = format_id::fp32;
  bool integer_values = false;
};

/// The tensors to which `--from` applies: one tensor, whose elements it must not contradict, or all
/// tensors of integers among several.
enum class from_scope : std::uint8_t { one_tensor, integers };

/// Whether the elements are integers. `--from` may then declare them to be codes.
bool holds_integers(const tensor_info& info);

/// How to read the elements of a tensor. Floating-point elements have the format of their type;
/// `from` may name only this format. Integers are values, or codes of the format `from`, which must
/// have the integers' width. Returns nothing for booleans and complex numbers, and for tensors that
/// are not read.
///
/// @param option  the name of `from` in errors
/// @param from  a format's name, or empty
/// @throws usage_error  if `from` contradicts the elements
std::optional<element_reading> reading_of(const tensor_info& info, std::string_view option,
                                          std::string_view from,
                                          from_scope scope = from_scope::one_tensor);

/// The .safetensors element type of the format. tf32 is stored as fp32, as in memory.
dtype own_type(format_id format);

/// The name of the element type: "bf16", or "U8" for integer values.
inline std::string_view type_text(const tensor_info& info, const element_reading& how) {
  return how.integer_values ? tensor_file::name(info.type) : name(how.format);
}

/// The coordinates of an element: "[17, 254]".
std::string position_text(std::uint64_t index, std::span<const std::uint64_t> shape);

/// Bytes of one code.
inline std::size_t bytes_each(format_id format) {
  return static_cast<std::size_t>(storage_bytes(format));
}

/// Codes in memory as a matrix, row by row.
inline const_matrix_view codes_at(format_id format, const std::byte* data, std::uint64_t rows,
                                  std::uint64_t cols) {
  return view_of_codes(format, static_cast<const void*>(data), static_cast<std::int64_t>(rows),
                       static_cast<std::int64_t>(cols));
}
inline matrix_view codes_at(format_id format, std::byte* data, std::uint64_t rows,
                            std::uint64_t cols) {
  return view_of_codes(format, static_cast<void*>(data), static_cast<std::int64_t>(rows),
                       static_cast<std::int64_t>(cols));
}

/// The values of out.size() codes of any alignment.
void decode(format_id format, const std::byte* codes, std::span<double> out);

/// One tensor of a file.
struct source_tensor {
  std::shared_ptr<const tensor_reader> file;
  tensor_info info;
  element_reading how;

  [[nodiscard]] format_id format() const { return how.format; }
  /// Reads elements [first, first + count) as codes of the format, laid out as by
  /// tensor_file::read_codes().
  void read(std::uint64_t first, std::uint64_t count, std::byte* out) const;
  /// The codes of all elements in the mapped file, not copied. Nothing if read() would convert or
  /// unpack the elements, or if the elements are not aligned for their type.
  [[nodiscard]] std::optional<std::span<const std::byte>> view() const;
  /// The index of the first integer that fp64 does not hold exactly, if there is one. Only 64-bit
  /// integers can be inexact.
  [[nodiscard]] std::optional<std::uint64_t> find_inexact_integer() const;
};

/// The tensor that an argument names as FILE or FILE#TENSOR. The tensor's name may be omitted if
/// the file has only one tensor.
///
/// @param which  the argument's name in errors: "IN"
/// @param option  the name of `from`: "--from"
/// @throws file_error  if the file cannot be read
/// @throws usage_error  if the argument or `from` is incomplete, or both contradict each other
source_tensor open_source(std::string_view which, const std::string& input, std::string_view option,
                          std::string_view from, from_scope scope = from_scope::one_tensor);

}  // namespace fpinspect
