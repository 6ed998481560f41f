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

class dequantize_command final : public command {
  checkpoint_files files_{add, "A file that quantize wrote, or FILE#codes_t and the like",
                          "FILE.npy, FILE.safetensors, or - for standard output"};
  format_id& to_ = add.value("--to", one_of({format_id::fp32, format_id::fp16, format_id::bf16}),
                             "fp32, fp16 or bf16", "fp32");
  std::optional<tile_shape>& block_ =
      add.optional_value("--tile", tile_argument, "Tile (default: what IN says)");
  std::string& backend_ = add.text("--backend", "Where to compute (default: the best here)");
  std::string& whole_ = files_.add_whole(add, {"--tile", "--backend"});

 public:
  explicit dequantize_command(option_list& list) : command(list) {
    add.refuse_json_beside("OUT", files_.out);
  }

  void run(const session& s) {
    if (files_.is_whole(whole_)) {
      const std::vector<std::string> files = files_.all();
      const auto plan = plan_dequantize(checkpoint_tensors(files), to_);
      return run_checkpoint(whole_, files, plan, {.where = all_threads()}, s);
    }
    const tensor_target target("OUT", files_.out);
    const executor device = quantizing_backend_argument(backend_);
    const tensor_location where = locate(files_.in);
    const auto file = open_file(where.file);
    const std::string suffix = suffix_of(where);
    const quantized_tensor stored = quantized_output(file, files_.in, suffix, tile_of(*file));
    const format_id from = stored.codes.format();
    owned_matrix values(to_, matrix_of(stored.codes.info));
    quantized_matrix(stored).dequantize(0, values.view(), device);
    target.write("values", to_, extents_of(values.shape), values.bytes, s.out);
    if (s.json) {
      return s.write_json({{"input", files_.in},
                           {"output", files_.out},
                           {"from", name(from)},
                           {"to", name(to_)},
                           {"block", extents_of({stored.tile.rows, stored.tile.cols})},
                           {"dtype", target.type_text(target.element_type(to_))},
                           {"shape", extents_of(values.shape)}});
    }
    s.note(cat(target.shown(), ": ", shape_text(values.shape), ", ", name(from), " by ",
               block_text(stored.tile), " -> ", name(to_), "\n"));
  }

 private:
  /// The tile shape in the file's metadata, else --tile.
  [[nodiscard]] tile_shape tile_of(const tensor_reader& file) const {
    const auto own = noted_tile(file, files_.in);
    if (own && block_ && *block_ != *own) {
      throw usage_error(cat("--tile: ", block_text(*block_), " contradicts the file, which says ",
                            block_text(*own), "; leave --tile out"));
    }
    if (own) return *own;
    if (block_) return *block_;
    throw usage_error(cat("--tile: needed, since ", escape_path(files_.in),
                          " has no samebits.block among its metadata"));
  }
};

const registered dequantize_here("dequantize", "Write the values of a quantized tensor", 60,
                                 run_of<dequantize_command>);

}  // namespace
}  // namespace fpinspect
