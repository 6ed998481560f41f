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

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/core/format.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

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
    refuse_content(input, std::string(name) + " must be a matrix as `quantize` writes it, not " +
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

/// The suffix after "codes" and "scales" in the tensor names of one output of `quantize`.
std::string suffix_of(const tensor_location& where) {
  if (!where.tensor) return "";
  constexpr std::string_view codes = "codes";
  if (where.tensor->starts_with(codes)) return where.tensor->substr(codes.size());
  refuse_name("IN", *where.tensor, "codes, codes_col, codes_t");
}

format_id value_format_argument(std::string_view option, std::string_view text) {
  return format_among(option, text, std::array{format_id::fp32, format_id::fp16, format_id::bf16});
}

class dequantize_command final : public command {
 public:
  void options(option_list& add) override {
    add.required("IN", input_, "A file that quantize wrote, or FILE#codes_t and the like");
    add.required("OUT", output_, "FILE.npy, FILE.safetensors, or - for standard output");
    add.value("--to", to_, value_format_argument, "fp32, fp16 or bf16", "fp32");
    add.value("--block", block_, tile_argument, "Tile (default: what IN says)");
    add.text("--backend", backend_, "Where to compute (default: the best here)");
    add.refuse_json_beside("OUT", output_);
  }

  void run(const session& s) override {
    constexpr std::array code_formats = {format_id::e4m3, format_id::e5m2};
    constexpr std::array scale_formats = {format_id::fp32, format_id::e8m0};
    const tensor_target target("OUT", output_);
    const samebits::executor executor = quantizing_backend_argument(backend_);
    const tensor_location where = locate(input_);
    const reader file = open_file(where.file);
    const std::string suffix = suffix_of(where);
    const samebits::tile_shape first = tile_of(file);
    const samebits::tile_shape tile =
        suffix.empty() ? first : samebits::tile_shape{first.cols, first.rows};
    const loaded_matrix codes = load(file, input_, "codes" + suffix, code_formats);
    const loaded_matrix scales = load(file, input_, "scales" + suffix, scale_formats);

    const samebits::const_matrix_view& c = codes.view;
    std::vector<std::byte> values(
        static_cast<std::size_t>(c.rows * c.cols * samebits::storage_bytes(to_)));
    try {
      samebits::dequantize(c, scales.view,
                           samebits::view_of_codes(to_, values.data(), c.rows, c.cols), tile,
                           executor);
    } catch (
        const samebits::invalid_argument& error) {  // the shapes in the file do not fit together
      refuse_content(input_, error.what());
    }
    target.write("values", to_, pair(c.rows, c.cols), values, s.out);
    if (s.json) {
      return s.write_json({{"input", input_},
                           {"output", output_},
                           {"from", samebits::name(c.format)},
                           {"to", samebits::name(to_)},
                           {"block", pair(tile.rows, tile.cols)},
                           {"dtype", target.type_text(target.element_type(to_))},
                           {"shape", pair(c.rows, c.cols)}});
    }
    const std::string line =
        cat(target.shown(), ": [", c.rows, ", ", c.cols, "], ", samebits::name(c.format), " by ",
            block_text(tile), " -> ", samebits::name(to_), "\n");
    static_cast<void>(std::fputs(line.c_str(), stderr));
  }

 private:
  static std::vector<std::uint64_t> pair(std::int64_t a, std::int64_t b) {
    return {static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)};
  }

  /// The tile shape in the file's metadata, else --block.
  [[nodiscard]] samebits::tile_shape tile_of(const reader& file) const {
    const auto own = stored_tile(input_, file);
    if (own && block_ && *block_ != *own) {
      throw usage_error(cat("--block: ", block_text(*block_), " contradicts the file, which says ",
                            block_text(*own), "; leave --block out"));
    }
    if (own) return *own;
    if (block_) return *block_;
    throw usage_error(cat("--block: needed, since ", samebits::tensor_file::escape_path(input_),
                          " has no samebits.block among its metadata"));
  }

  std::string input_;
  std::string output_;
  format_id to_ = format_id::fp32;
  std::optional<samebits::tile_shape> block_;
  std::string backend_;
};

const registered<dequantize_command> dequantize_here("dequantize",
                                                     "Write the values of a quantized tensor", 60);

}  // namespace
}  // namespace fpinspect
