// `fpinspect dequantize`: turns codes and scales of a .safetensors file into values.
#include "fpinspect/checkpoint/checkpoint.hpp"
#include "fpinspect/tensors/tensor_output.hpp"

namespace fpinspect {
namespace {

/// The suffix after "codes" and "scales" in the tensor names of one output of `quantize`.
std::string suffix_of(const tensor_location& where) {
  if (!where.tensor) return "";
  constexpr std::string_view codes = "codes";
  if (where.tensor->starts_with(codes)) return where.tensor->substr(codes.size());
  refuse_name("IN", *where.tensor, "codes, codes_col, codes_t");
}

/// The tile shape in the metadata of the file, else that of --tile.
tile_shape tile_of(const tensor_reader& file, const std::string& in,
                   const std::optional<tile_shape>& given) {
  const auto own = noted_tile(file, in);
  if (own && given && *given != *own) {
    throw usage_error("--tile: ", block_text(*given), " contradicts the file, which says ",
                      block_text(*own), "; leave --tile out");
  }
  if (own) return *own;
  if (given) return *given;
  throw usage_error("--tile: needed, since ", escape_path(in),
                    " has no samebits.block among its metadata");
}

run_function dequantize_command(option_list& add) {
  checkpoint_files files{add, "A file that quantize wrote, or FILE#codes_t and the like",
                         "FILE.npy, FILE.safetensors, or - for standard output"};
  auto& to = add.value("--to", one_of({format_id::fp32, format_id::fp16, format_id::bf16}),
                       "fp32, fp16 or bf16", "fp32");
  auto& block = add.optional_value("--tile", tile_argument, "Tile (default: what IN says)");
  auto& backend = add.text("--backend", "Where to compute (default: the best here)");
  auto& whole = files.add_whole(add, {"--tile", "--backend"});

  add.refuse_json_beside("OUT", files.out);
  return [&, files](const session& s) {
    if (files.is_whole(whole)) {
      const std::vector<std::string> all = files.all();
      const auto plan = plan_dequantize(checkpoint_tensors(all), to);
      return run_checkpoint(whole, all, plan, {.where = all_threads()}, s);
    }
    const tensor_target target("OUT", files.out);
    const executor device = quantizing_backend_argument(backend);
    const tensor_location where = locate(files.in);
    const auto file = open_file(where.file);
    const std::string suffix = suffix_of(where);
    const quantized_tensor stored =
        quantized_output(file, files.in, suffix, tile_of(*file, files.in, block));
    const format_id from = stored.codes.format();
    owned_matrix values(to, matrix_of(stored.codes.info));
    quantized_matrix(stored).dequantize(0, values.view(), device);
    target.write("values", to, extents_of(values.shape), values.bytes, s.out);
    if (s.json) {
      return s.write_json({{"input", files.in},
                           {"output", files.out},
                           {"from", name(from)},
                           {"to", name(to)},
                           {"block", extents_of({stored.tile.rows, stored.tile.cols})},
                           {"dtype", target.type_text(target.element_type(to))},
                           {"shape", extents_of(values.shape)}});
    }
    s.note(target.shown(), ": ", shape_text(values.shape), ", ", from, " by ",
           block_text(stored.tile), " -> ", to, "\n");
  };
}

const registered dequantize_here("dequantize", "Write the values of a quantized tensor", 60,
                                 dequantize_command);

}  // namespace
}  // namespace fpinspect
