// The input of `convert` and operands of `arith`: implementation.
#include "fpinspect/source.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>

#include "fpinspect/arguments.hpp"
#include "fpinspect/error.hpp"
#include "samebits/format.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::dtype;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

/// FILE and TENSOR of the argument.
struct location {
  std::filesystem::path file;
  std::optional<std::string> tensor;
};

location locate(const std::string& input) {
  const std::size_t split = input.rfind('#');
  std::error_code ignored;
  if (split == std::string::npos || std::filesystem::exists(input, ignored)) return {input, {}};
  return {input.substr(0, split), input.substr(split + 1)};
}

tensor_info choose(const reader& file, const location& where) {
  if (where.tensor) return file.find(*where.tensor);
  if (file.tensors().size() == 1) return file.tensors().front();
  throw usage_error("IN: " + samebits::tensor_file::escape_path(where.file) + " holds " +
                    std::to_string(file.tensors().size()) + " tensors; name one as FILE#TENSOR");
}

/// Bits of an unsigned integer type, else nothing.
std::optional<int> code_bits(dtype type) {
  switch (type) {
    case dtype::u8: return 8;
    case dtype::u16: return 16;
    case dtype::u32: return 32;
    case dtype::u64: return 64;
    default: return std::nullopt;
  }
}

format_id format_of(const tensor_info& info, std::string_view from, const std::string& where) {
  const std::string type(samebits::tensor_file::name(info.type));
  const auto own = samebits::tensor_file::format_of(info.type);
  const auto bits = code_bits(info.type);
  if (!own && !bits) {
    throw samebits::tensor_file::file_error(
        samebits::tensor_file::error_kind::unsupported,
        where + ": elements are " + type +
            ", neither floating point nor codes in U8, U16, U32, U64");
  }
  if (from.empty()) {
    if (own) return *own;
    throw usage_error("--from: needed to say which format the " + type + " codes are in");
  }
  const format_id asked = format_argument("--from", from);
  if (own && *own != asked) {
    throw usage_error("--from: " + std::string(from) + " contradicts the elements, which are " +
                      type);
  }
  if (bits && *bits != samebits::spec_of(asked).storage_bits) {
    throw usage_error("--from: codes of " + std::string(from) + " have " +
                      std::to_string(samebits::spec_of(asked).storage_bits) +
                      " bits, the elements are " + type);
  }
  return asked;
}

}  // namespace

source_tensor open_source(const std::string& input, std::string_view from) {
  const location where = locate(input);
  reader file = reader::open(where.file);
  tensor_info info = choose(file, where);
  const format_id format = format_of(info, from, samebits::tensor_file::escape_path(input));
  return {std::move(file), std::move(info), format};
}

source_tensor open_operand(std::string_view which, const std::string& input, format_id format) {
  const location where = locate(input);
  reader file = reader::open(where.file);
  tensor_info info = choose(file, where);
  if (const auto own = samebits::tensor_file::format_of(info.type)) {
    return {std::move(file), std::move(info), *own};
  }
  const std::string type(samebits::tensor_file::name(info.type));
  const int bits = samebits::spec_of(format).storage_bits;
  if (code_bits(info.type) != bits) {
    throw usage_error(std::string(which) + ": the elements are " + type + "; codes of " +
                      std::string(samebits::name(format)) + " are U" + std::to_string(bits));
  }
  return {std::move(file), std::move(info), format};
}

}  // namespace fpinspect
