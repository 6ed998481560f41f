// `fpinspect convert`: rounds a tensor to a format and writes codes or binary32 values.
#include "fpinspect/checkpoint/checkpoint.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/tensors/tensor_output.hpp"

namespace fpinspect {
namespace {

format_id target_argument(std::string_view option, std::string_view text) {
  const format_id to = format_argument(option, text);
  if (to != format_id::fp64) return to;
  throw usage_error(option, ": fp64 is a source only; no array conversion into it is written");
}

/// The elements of OUT, of format `to` or decoded to binary32. Element i in C order is element (0, i)
/// of a row and has the random index offset + i. This index is the contract's
/// offset + row * pitch + column, with the last axis as the column.
owned_matrix converted(const source_tensor& source, format_id to, bool decode,
                       const convert_options& rule, const executor& where) {
  const matrix_shape row = {1, static_cast<std::int64_t>(source.info.count)};
  owned_matrix codes(to, row);
  samebits::convert(matrix_of(source, row).view, codes.view(), rule, where);
  if (!decode) return codes;
  owned_matrix values(format_id::fp32, row);
  samebits::convert(codes.view(), values.view(), {.nan = rule.nan}, where);
  return values;
}

run_function convert_command(option_list& add) {
  checkpoint_files files{add, tensor_help, "FILE.npy, FILE.safetensors, or - for standard output"};
  auto& to = add.optional_value("--to", target_argument, "Format to round into");
  auto& from = add.text("--from", "Integers are codes of this format (default: values)");
  auto& decode = add.flag("--decode", "Write binary32 values instead of codes");
  auto& backend = add.text("--backend", "Where to compute (default: the best here)");
  auto& whole = files.add_whole(add, {"--from", "--decode", "--backend"});
  checkpoint_choices choices{add};
  auto& rule = add_rounding_rule(add);

  for (const char* choice : {"--map", "--by-verdict"}) add.exclude(choice, {"--to"});
  add.refuse(
      [&] { return !add.given("--to") && !add.given("--map") && !add.given("--by-verdict"); },
      "--to is required; `fpinspect convert --help` says more");
  add.refuse_json_beside("OUT", files.out);
  return [&, files, choices](const session& s) {
    if (files.is_whole(whole)) {
      const bool part_bytes = to && tensor_file::spec_of(own_type(*to)).bits % 8 != 0;
      if (part_bytes || to == format_id::tf32) {
        throw usage_error("--to: ", *to, " has no element type of whole bytes, which -o needs");
      }
      const std::vector<std::string> all = files.all();
      return run_checkpoint(whole, all, plan_convert(choices, checkpoint_tensors(all), to),
                            {.rule = rule, .where = all_threads()}, s);
    }
    const executor where = host_backend_argument(backend);
    const tensor_target target("OUT", files.out);
    const source_tensor source = open_source("IN", files.in, "--from", from);
    const format_id written = decode ? format_id::fp32 : *to;
    target.require_packable(written, source.info.count);
    const std::string stored = source.info.name.empty() ? "tensor" : source.info.name;
    target.write(stored, written, source.info.shape,
                 converted(source, *to, decode, rule, where).bytes, s.out);
    if (s.json) {
      return s.write_json(json_object{{"input", files.in},
                                      {"output", files.out},
                                      {"from", type_text(source.info, source.how)},
                                      {"to", name(*to)}}
                              .add(rule_json(rule))
                              .add({{"decoded", decode},
                                    {"dtype", target.type_text(target.element_type(written))},
                                    {"count", source.info.count},
                                    {"shape", source.info.shape},
                                    {"backend", where.backend}}));
    }
    s.note(target.shown(), ": ", number_of(source.info.count, "element"), " ",
           shape_text(source.info.shape), ", ", type_text(source.info, source.how), " -> ", *to,
           " (", rule_text(rule), ")", decode ? ", decoded to fp32" : "", ", backend ",
           where.backend, "\n");
  };
}

const registered convert_here("convert", "Round a tensor into a format", 40, convert_command);

}  // namespace
}  // namespace fpinspect
