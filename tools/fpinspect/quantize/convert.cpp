// `fpinspect convert`: rounds a tensor to a format and writes codes or binary32 values.
#include "samebits/convert.hpp"
#include "fpinspect/checkpoint/checkpoint.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"

namespace fpinspect {
namespace {

format_id target_argument(std::string_view option, std::string_view text) {
  const format_id to = format_argument(option, text);
  if (to != format_id::fp64) return to;
  throw usage_error(cat(option, ": fp64 is a source only; no array conversion into it is written"));
}

class convert_command final : public command {
 public:
  void options(option_list& add) override {
    add.required("IN", input_, "FILE.npy, .npz, .safetensors, .gguf or .pt, FILE#TENSOR, or -");
    add.text("OUT", output_, "FILE.npy, FILE.safetensors, or - for standard output");
    add.optional("FILE", checkpoint_.more_files, "With -o: further files, an index or a folder");
    add.value("--to", to_, target_argument, "Format to round into");
    add.text("--from", from_, "Integers are codes of this format (default: values)");
    add.flag("--decode", decode_, "Write binary32 values instead of codes");
    add.text("--backend", backend_, "Where to compute (default: the best here)");
    checkpoint_.add_out(add, output_, {"--from", "--decode", "--backend"});
    checkpoint_.add_choices(add);
    add_rounding_rule(add, rule_);
    for (const char* choice : {"--map", "--by-verdict"}) add.exclude(choice, {"--to"});
    add.refuse(
        [&add] { return !add.given("--to") && !add.given("--map") && !add.given("--by-verdict"); },
        "--to is required; `fpinspect convert --help` says more");
    add.refuse_json_beside("OUT", output_);
  }

  void run(const session& s) override {
    if (checkpoint_.is_whole()) return run_whole(s);
    where_ = host_backend_argument(backend_);
    const tensor_target target("OUT", output_);
    const source_tensor source = open_source("IN", input_, "--from", from_);
    const format_id written = decode_ ? format_id::fp32 : to_;
    target.require_packable(written, source.info.count);
    const std::string name = source.info.name.empty() ? "tensor" : source.info.name;
    target.write(name, written, source.info.shape, converted(source).bytes, s.out);
    if (s.json) {
      return s.write_json(json_object{{"input", input_},
                                      {"output", output_},
                                      {"from", type_text(source.info, source.how)},
                                      {"to", samebits::name(to_)}}
                              .add(rule_json(rule_))
                              .add({{"decoded", decode_},
                                    {"dtype", target.type_text(target.element_type(written))},
                                    {"count", source.info.count},
                                    {"shape", source.info.shape},
                                    {"backend", where_.backend}}));
    }
    s.note(cat(target.shown(), ": ", number_of(source.info.count, "element"), " [",
               comma_separated(source.info.shape), "], ", type_text(source.info, source.how),
               " -> ", samebits::name(to_), " (", rule_text(rule_), ")",
               decode_ ? ", decoded to fp32" : "", ", backend ", where_.backend, "\n"));
  }

 private:
  /// Converts the tensors of all files.
  void run_whole(const session& s) const {
    const bool chosen = checkpoint_.by_verdict || !checkpoint_.map.empty();
    const bool whole_bytes = tensor_file::spec_of(own_type(to_)).bits % 8 == 0;
    if (!whole_bytes || to_ == format_id::tf32) {
      throw usage_error(
          cat("--to: ", name(to_), " has no element type of whole bytes, which -o needs"));
    }
    const std::vector<std::string> files = checkpoint_.files(input_, output_);
    const std::vector<shown_tensor> tensors = checkpoint_tensors(files);
    run_checkpoint(checkpoint_, files,
                   plan_convert(checkpoint_, tensors, chosen ? std::nullopt : std::optional(to_)),
                   {.rule = rule_, .where = all_threads()}, s);
  }

  /// The elements of OUT. Element i in C order is element (0, i) of a row and has the random index
  /// offset + i. This index is the contract's offset + row * pitch + column, with the last axis as the
  /// column.
  [[nodiscard]] owned_matrix converted(const source_tensor& source) const {
    const matrix_shape row = {1, static_cast<std::int64_t>(source.info.count)};
    owned_matrix codes(to_, row);
    samebits::convert(matrix_of(source, row).view, codes.view(), rule_, where_);
    if (!decode_) return codes;
    owned_matrix values(format_id::fp32, row);
    samebits::convert(codes.view(), values.view(), {.nan = rule_.nan}, where_);
    return values;
  }

  std::string input_;
  std::string output_;
  checkpoint_options checkpoint_;
  format_id to_ = format_id::fp32;
  std::string from_;
  bool decode_ = false;
  std::string backend_;
  convert_options rule_;
  executor where_;
};

const registered<convert_command> convert_here("convert", "Round a tensor into a format", 40);

}  // namespace
}  // namespace fpinspect
