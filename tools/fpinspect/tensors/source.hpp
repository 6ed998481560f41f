// Tensors that subcommands read: FILE or FILE#TENSOR, and how the elements are understood.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/core/format.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

/// FILE and TENSOR of an argument.
struct tensor_location {
  std::filesystem::path file;
  std::optional<std::string> tensor;
};

/// Splits at the last #; a file that is called `input` as a whole goes first.
tensor_location locate(const std::string& input);

/// Whether an argument that is no number names a file: by its name, or because there is one.
bool names_a_file(const std::string& input);

/// What the elements of a tensor are: codes of `format`, or integers that are values, which are
/// handed out as codes of `format` that hold them exactly (fp32 up to 16 bits, else fp64).
struct element_reading {
  samebits::format_id format = samebits::format_id::fp32;
  bool integer_values = false;
};

/// Which tensors `--from` speaks of: one, whose elements it may not contradict, or of several those
/// that hold integers.
enum class from_scope : std::uint8_t { one_tensor, integers };

/// Whether the elements are integers, of which `--from` may say that they are codes.
bool holds_integers(const samebits::tensor_file::tensor_info& info);

/// How to read the elements of a tensor. Floating-point elements have the format of their type;
/// `from` may name that format, but no other. Integers are values, or codes of the format `from`,
/// which must have the integers' width. Returns nothing for booleans and complex numbers.
///
/// option  what `from` is called in errors
/// from    a format's name, or empty
///
/// Throws usage_error where `from` contradicts the elements.
std::optional<element_reading> reading_of(const samebits::tensor_file::tensor_info& info,
                                          std::string_view option, std::string_view from,
                                          from_scope scope = from_scope::one_tensor);

/// How the elements are called: "bf16", or "U8" for integers that are values.
std::string_view type_text(const samebits::tensor_file::tensor_info& info,
                           const element_reading& how);

/// The number of the first integer that fp64 does not hold exactly, if there is any: only those of
/// 64 bits can be.
std::optional<std::uint64_t> find_inexact_integer(const samebits::tensor_file::tensor_file& file,
                                                  const samebits::tensor_file::tensor_info& info);

/// Codes of how.format of elements [first, first + count), as tensor_file::read_codes() gives them.
void read_elements(const samebits::tensor_file::tensor_file& file,
                   const samebits::tensor_file::tensor_info& info, const element_reading& how,
                   std::uint64_t first, std::uint64_t count, std::byte* out);

/// The codes of all elements in the mapped file, not copied. Nothing if read_elements() would
/// convert or unpack the elements, or if the elements are not aligned for their type.
std::optional<std::span<const std::byte>> view_elements(
    const samebits::tensor_file::tensor_file& file, const samebits::tensor_file::tensor_info& info,
    const element_reading& how);

/// One tensor of a file.
struct source_tensor {
  samebits::tensor_file::tensor_file file;
  samebits::tensor_file::tensor_info info;
  element_reading how;

  [[nodiscard]] samebits::format_id format() const { return how.format; }
  void read(std::uint64_t first, std::uint64_t count, std::byte* out) const {
    read_elements(file, info, how, first, count, out);
  }
  [[nodiscard]] std::optional<std::span<const std::byte>> view() const {
    return view_elements(file, info, how);
  }
};

/// The tensor that an argument names, FILE or FILE#TENSOR; the name may be left out where the file
/// holds one.
///
/// which   what the argument is called in errors: "IN"
/// option  what `from` is called: "--from"
///
/// Throws file_error, and usage_error where the argument or `from` does not say what is needed or
/// the two contradict each other.
source_tensor open_source(std::string_view which, const std::string& input, std::string_view option,
                          std::string_view from, from_scope scope = from_scope::one_tensor);

}  // namespace fpinspect
