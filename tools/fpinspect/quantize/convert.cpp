// `fpinspect convert`: rounds a tensor to a format and writes codes or binary32 values.
#include "fpinspect/checkpoint/checkpoint.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/tensors/tensor_output.hpp"

namespace fpinspect {
namespace {

format_id target_argument(std::string_view option, std::string_view text) {
  const format_id to = format_argument(option, text);
  if (to != format_id::fp64) return to;
  throw usage_error(cat(option, ": fp64 is a source only; no array conversion into it is written"));
}

class convert_command final : public command {
  checkpoint_files files_{add, "FILE.npy, .npz, .safetensors, .gguf or .pt, FILE#TENSOR, or -",
                          "FILE.npy, FILE.safetensors, or - for standard output"};
  std::optional<format_id>& to_ =
      add.optional_value("--to", target_argument, "Format to round into");
  std::string& from_ = add.text("--from", "Integers are codes of this format (default: values)");
  bool& decode_ = add.flag("--decode", "Write binary32 values instead of codes");
  std::string& backend_ = add.text("--backend", "Where to compute (default: the best here)");
  std::string& whole_ = files_.add_whole(add, {"--from", "--decode", "--backend"});
  checkpoint_choices choices_{add};
  convert_options& rule_ = add_rounding_rule(add);

 public:
  explicit convert_command(option_list& list) : command(list) {
    for (const char* choice : {"--map", "--by-verdict"}) add.exclude(choice, {"--to"});
    add.refuse(
        [this] { return !add.given("--to") && !add.given("--map") && !add.given("--by-verdict"); },
        "--to is required; `fpinspect convert --help` says more");
    add.refuse_json_beside("OUT", files_.out);
  }

  void run(const session& s) {
    if (files_.is_whole(whole_)) return run_whole(s);
    where_ = host_backend_argument(backend_);
    const tensor_target target("OUT", files_.out);
    const source_tensor source = open_source("IN", files_.in, "--from", from_);
    const format_id written = decode_ ? format_id::fp32 : *to_;
    target.require_packable(written, source.info.count);
    const std::string name = source.info.name.empty() ? "tensor" : source.info.name;
    target.write(name, written, source.info.shape, converted(source).bytes, s.out);
    if (s.json) {
      return s.write_json(json_object{{"input", files_.in},
                                      {"output", files_.out},
                                      {"from", type_text(source.info, source.how)},
                                      {"to", samebits::name(*to_)}}
                              .add(rule_json(rule_))
                              .add({{"decoded", decode_},
                                    {"dtype", target.type_text(target.element_type(written))},
                                    {"count", source.info.count},
                                    {"shape", source.info.shape},
                                    {"backend", where_.backend}}));
    }
    s.note(cat(target.shown(), ": ", number_of(source.info.count, "element"), " [",
               comma_separated(source.info.shape), "], ", type_text(source.info, source.how),
               " -> ", samebits::name(*to_), " (", rule_text(rule_), ")",
               decode_ ? ", decoded to fp32" : "", ", backend ", where_.backend, "\n"));
  }

 private:
  /// Converts the tensors of all files.
  void run_whole(const session& s) const {
    const bool part_bytes = to_ && tensor_file::spec_of(own_type(*to_)).bits % 8 != 0;
    if (part_bytes || to_ == format_id::tf32) {
      throw usage_error(
          cat("--to: ", name(*to_), " has no element type of whole bytes, which -o needs"));
    }
    const std::vector<std::string> files = files_.all();
    run_checkpoint(whole_, files, plan_convert(choices_, checkpoint_tensors(files), to_),
                   {.rule = rule_, .where = all_threads()}, s);
  }

  /// The elements of OUT. Element i in C order is element (0, i) of a row and has the random index
  /// offset + i. This index is the contract's offset + row * pitch + column, with the last axis as the
  /// column.
  [[nodiscard]] owned_matrix converted(const source_tensor& source) const {
    const matrix_shape row = {1, static_cast<std::int64_t>(source.info.count)};
    owned_matrix codes(*to_, row);
    samebits::convert(matrix_of(source, row).view, codes.view(), rule_, where_);
    if (!decode_) return codes;
    owned_matrix values(format_id::fp32, row);
    samebits::convert(codes.view(), values.view(), {.nan = rule_.nan}, where_);
    return values;
  }

  executor where_;
};

const registered convert_here("convert", "Round a tensor into a format", 40,
                              run_of<convert_command>);

}  // namespace
}  // namespace fpinspect
