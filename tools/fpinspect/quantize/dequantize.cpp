// `fpinspect dequantize`: turns codes and scales of a .safetensors file into values.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/quantize/quantize_arguments.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/core/format.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

[[noreturn]] void malformed(const std::string& input, const std::string& what) {
  throw samebits::tensor_file::file_error(samebits::tensor_file::error_kind::malformed,
                                          samebits::tensor_file::escape_path(input) + ": " + what);
}

/// A matrix of the file, in its own memory.
struct loaded_matrix {
  format_id format;
  std::vector<std::byte> bytes;
  samebits::const_matrix_view view;
};

loaded_matrix load(const reader& file, const std::string& input, std::string_view name,
                   std::span<const format_id> among) {
  const tensor_info& info = file.find(name);
  const auto format = samebits::tensor_file::format_of(info.type);
  bool known = false;
  for (const format_id f : among) known = known || format == f;
  if (!known || info.shape.size() != 2) {
    malformed(input, std::string(name) + " must be a matrix as `quantize` writes it, not " +
                         std::string(samebits::tensor_file::name(info.type)) + " [" +
                         comma_separated(info.shape) + "]");
  }
  loaded_matrix m = {*format, {}, {}};
  m.bytes.resize(info.bytes);
  file.read_codes(info, 0, info.count, m.bytes.data());
  m.view = samebits::view_of_codes(*format, static_cast<const void*>(m.bytes.data()),
                                   static_cast<std::int64_t>(info.shape[0]),
                                   static_cast<std::int64_t>(info.shape[1]));
  return m;
}

/// The tile shape in the file's metadata, else --block.
samebits::tile_shape tile_of(const dequantize_arguments& arguments, const reader& file) {
  std::optional<samebits::tile_shape> asked;
  if (!arguments.block.empty()) asked = tile_argument("--block", arguments.block);
  for (const auto& [key, text] : file.metadata()) {
    if (key != "samebits.block") continue;
    const samebits::tile_shape own = stored_tile(arguments.input, text);
    if (asked && *asked != own) {
      throw usage_error(cat("--block: ", block_text(*asked), " contradicts the file, which says ",
                            block_text(own), "; leave --block out"));
    }
    return own;
  }
  if (asked) return *asked;
  throw usage_error("--block: needed, since " +
                    samebits::tensor_file::escape_path(arguments.input) +
                    " has no samebits.block among its metadata");
}

/// The suffix after "codes" and "scales" in the tensor names of one output of `quantize`.
std::string suffix_of(const tensor_location& where) {
  if (!where.tensor) return "";
  constexpr std::string_view codes = "codes";
  if (where.tensor->starts_with(codes)) return where.tensor->substr(codes.size());
  throw usage_error(cat("IN: ", samebits::tensor_file::quote(*where.tensor),
                        " is not one of codes, codes_col, codes_t"));
}

void write_json(const dequantize_arguments& arguments, const samebits::const_matrix_view& codes,
                const samebits::tile_shape& tile, format_id to, const tensor_target& target,
                output& out) {
  const auto pair = [](std::int64_t a, std::int64_t b) {
    return std::array{static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)};
  };
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("input", arguments.input);
  json.member("output", arguments.output);
  json.member("from", samebits::name(codes.format));
  json.member("to", samebits::name(to));
  json.member("block", std::span<const std::uint64_t>(pair(tile.rows, tile.cols)));
  json.member("dtype", target.type_text(target.element_type(to)));
  json.member("shape", std::span<const std::uint64_t>(pair(codes.rows, codes.cols)));
  json.end_object();
  out.write(json.document());
}

}  // namespace

void run_dequantize(const dequantize_arguments& arguments, output& out) {
  constexpr std::array code_formats = {format_id::e4m3, format_id::e5m2};
  constexpr std::array scale_formats = {format_id::fp32, format_id::e8m0};
  const format_id to = wide_format_argument("--to", arguments.to);
  const tensor_target target("OUT", arguments.output);
  const samebits::executor executor = quantizing_backend_argument(arguments.backend);
  const tensor_location where = locate(arguments.input);
  const reader file = open_file(where.file);
  const std::string suffix = suffix_of(where);
  const samebits::tile_shape first = tile_of(arguments, file);
  const samebits::tile_shape tile =
      suffix.empty() ? first : samebits::tile_shape{first.cols, first.rows};
  const loaded_matrix codes = load(file, arguments.input, "codes" + suffix, code_formats);
  const loaded_matrix scales = load(file, arguments.input, "scales" + suffix, scale_formats);

  const samebits::const_matrix_view& c = codes.view;
  std::vector<std::byte> values(
      static_cast<std::size_t>(c.rows * c.cols * samebits::storage_bytes(to)));
  try {
    samebits::dequantize(c, scales.view, samebits::view_of_codes(to, values.data(), c.rows, c.cols),
                         tile, executor);
  } catch (const samebits::invalid_argument& error) {  // the shapes in the file do not fit together
    malformed(arguments.input, error.what());
  }
  const std::uint64_t shape[] = {static_cast<std::uint64_t>(c.rows),
                                 static_cast<std::uint64_t>(c.cols)};
  target.write("values", to, shape, values, out);
  if (arguments.view.json) {
    write_json(arguments, c, tile, to, target, out);
  } else {
    const std::string line =
        cat(target.shown(), ": [", c.rows, ", ", c.cols, "], ", samebits::name(c.format), " by ",
            block_text(tile), " -> ", samebits::name(to), "\n");
    static_cast<void>(std::fputs(line.c_str(), stderr));
  }
}

}  // namespace fpinspect
