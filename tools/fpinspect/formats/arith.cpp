// `fpinspect arith`: one operation on numbers, or on the elements of files, with the flags that it
// raises.
#include "fpinspect/formats/arith_function.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

constexpr std::array<std::string_view, 3> operand_names{"A", "B", "C"};

/// An operand: a number of the command line, or a file. Codes are in the format of the operands.
struct arith_operand {
  std::string text;
  std::uint64_t code = 0;                            ///< code of a number
  bool inexact = false;                              ///< the text was rounded to the code
  std::optional<source_tensor> file = std::nullopt;  ///< elements are codes, or to be rounded
  std::uint64_t rounded = 0;                         ///< files: elements that rounding changed
};

format_id require_arithmetic(std::string_view option, format_id format) {
  if (has_arithmetic(format)) return format;
  std::vector<format_id> others = all_formats();
  std::erase_if(others, [](format_id other) { return !has_arithmetic(other); });
  throw usage_error(option, ": there is no arithmetic in ", format, ", only in ",
                    joined(others, [](format_id other) { return name(other); }));
}

arith_operand operand_argument(std::string_view which, const std::string& text,
                               const std::string& from, format_id format) {
  const parse_result parsed = parse(format, text);
  if (parsed.ok) return {text, parsed.code, parsed.inexact};
  if (names_a_file(text)) {
    return {.text = text, .file = open_source(which, text, "--from", from, from_scope::integers)};
  }
  refuse_value(which, text, "is neither a number nor a file, from byte ", parsed.error_offset,
               " on");
}

/// The elements of an operand, or its number for all elements, as codes of the task's format.
/// Floating-point elements of another format are rounded to it.
source_matrix codes_of(arith_operand& operand, format_id format, std::int64_t count) {
  if (!operand.file) return {{}, {&operand.code, format, 1, count, 0, 0}};
  source_matrix in = matrix_of(*operand.file, {1, count});
  if (in.view.format == format) return in;
  owned_matrix rounded(format, {1, count});
  const matrix_view view = rounded.view();
  const auto* const from = static_cast<const std::byte*>(in.view.data);
  const std::size_t read = bytes_each(in.view.format);
  const std::size_t written = bytes_each(format);
  for (std::size_t i = 0; i < operand.file->info.count; ++i) {
    const converted one = convert_code(in.view.format, format, load_code(from + i * read, read));
    store_code(&rounded.bytes[i * written], written, one.code);
    if (one.inexact) ++operand.rounded;
  }
  return {std::move(rounded.bytes), view};
}

struct arith_elements {
  std::vector<std::byte> codes;
  std::vector<flags> flags_of_each;
  flag_counts raised{};
};

class arith_command final : public command {
  std::string& op_ =
      add.required("OP",
                   "add, sub, mul, div, sqrt, fma, rem, rint, min, max, min_num or max_num; or a "
                   "function, such as exp or gelu, with --rule");
  text_list& texts_ =
      add.one_or_more("A", cat("Operands: numbers; not for functions: ", tensor_help));
  std::optional<format_id>& format_ = add.optional_value(
      "--format", format_argument, "Format of the operands; required, but fp32 for functions");
  std::string& function_rule_ = add.text("--rule",
                                         "Whose bits a function returns, such as cuda_13_0 or "
                                         "torch_2_11");
  std::optional<format_id>& dest_ = add.optional_value(
      "--dest", format_argument, "Format of the result (default: that of --format)");
  std::string& out_ = add.text("--out", "Where results go: FILE.npy, FILE.safetensors or -");
  std::string& flags_ = add.text("--flags", "Where a byte of flags for each goes, the same");
  std::string& from_code_ = add.text("--from", "Integers of files are codes of this format");
  convert_options& rule_ = add_rounding_rule(add);

 public:
  explicit arith_command(option_list& list) : command(list) {
    add.refuse([this] { return !out_.empty() && out_ == flags_; },
               "--out and --flags contradict each other: one place for both; name another one");
    add.refuse_json_beside("--out", out_);
    add.refuse_json_beside("--flags", flags_);
  }

  void run(const session& s) {
    if (const auto function = find_enumerator<samebits::function>(op_)) {
      refuse_unused();
      return run_arith_function(*function, function_rule_, texts_,
                                format_.value_or(format_id::fp32), s);
    }
    if (!function_rule_.empty()) {
      if (!find_enumerator<operation>(op_)) {
        refuse_name("OP", op_, names_of<function>());
      }
      throw usage_error("--rule: only for functions, not for ", op_);
    }
    operation_ = enumerator_argument<operation>("OP", op_);
    if (!format_) throw usage_error("--format is required");
    std::optional<tensor_target> out;
    std::optional<tensor_target> flag_target;
    if (!out_.empty()) out.emplace("--out", out_);
    if (!flags_.empty()) flag_target.emplace("--flags", flags_);
    read_operands();
    const arith_elements elements = all_elements();
    if (out) out->write("result", to_, shape_, elements.codes, s.out);
    if (flag_target) {
      flag_target->write("flags", dtype::u8, shape_,
                         std::as_bytes(std::span(elements.flags_of_each)), s.out);
    }
    if (has_files_) {
      if (s.json) return s.write_json(heading_json().add(files_json(elements)));
      return s.note(notes(*out, elements));
    }
    const arithmetic_result result{load_code(elements.codes.data(), elements.codes.size()),
                                   elements.flags_of_each.front()};
    if (s.json) return s.write_json(heading_json().add(number_json(result)));
    const bool has_data =
        (out && out->is_standard_output()) || (flag_target && flag_target->is_standard_output());
    s.report(table(result, s.term), has_data);
  }

 private:
  /// Refuses the options of operations that a function does not use. The command line itself refuses
  /// --seed, --stream, --offset and --random-bits without --rounding stochastic.
  void refuse_unused() const {
    const convert_options unused;
    const std::pair<const char*, bool> used[] = {{"--dest", dest_.has_value()},
                                                 {"--from", !from_code_.empty()},
                                                 {"--out", !out_.empty()},
                                                 {"--flags", !flags_.empty()},
                                                 {"--rounding", rule_.rounding != unused.rounding},
                                                 {"--overflow", rule_.overflow != unused.overflow},
                                                 {"--nan", rule_.nan != unused.nan}};
    for (const auto& [option, is_used] : used) {
      refuse_if(is_used && !function_rule_.empty(), option, ": not for functions; leave it out");
    }
  }

  void read_operands() {
    from_ = require_arithmetic("--format", *format_);
    to_ = dest_ ? require_arithmetic("--dest", *dest_) : from_;
    const auto wanted = static_cast<std::size_t>(operand_count(operation_));
    refuse_if(texts_.size() != wanted, op_, " takes ", number_of(wanted, "operand"), ", got ",
              texts_.size());
    std::string_view first;
    bool any_integers = false;
    for (std::size_t i = 0; i < wanted; ++i) {
      operands_.push_back(operand_argument(operand_names[i], texts_[i], from_code_, from_));
      const auto& file = operands_.back().file;
      if (!file) continue;
      any_integers = any_integers || holds_integers(file->info);
      if (first.empty()) {
        first = operand_names[i];
        shape_ = file->info.shape;
        count_ = file->info.count;
      } else if (shape_ != file->info.shape) {
        throw usage_error(operand_names[i], ": its shape ", shape_text(file->info.shape),
                          " is not that of ", first, ", ", shape_text(shape_));
      }
    }
    has_files_ = !first.empty();
    refuse_if(has_files_ && out_.empty(),
              "--out: needed for the results of files; name a file, or - for standard output");
    refuse_if(!from_code_.empty() && !any_integers,
              "--from: no operand is a file of integers; leave it out");
  }

  arith_elements all_elements() {
    const auto count = static_cast<std::int64_t>(count_);
    arith_elements result;
    result.codes.resize(count_ * bytes_each(to_));
    result.flags_of_each.resize(count_);
    std::array<source_matrix, 3> in;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      in[k] = codes_of(operands_[k], from_, count);
    }
    samebits::compute_with_flags(operation_, {in[0].view, in[1].view, in[2].view},
                                 codes_at(to_, result.codes.data(), 1, count_),
                                 {rule_.rounding, rule_.overflow, rule_.nan, rule_.random},
                                 {result.flags_of_each.data(), count}, {.backend = "reference"});
    for (const flags each : result.flags_of_each) count_flags(result.raised, each);
    return result;
  }

  [[nodiscard]] json_object heading_json() const {
    return json_object{{"op", op_}, {"format", name(from_)}, {"dest", name(to_)}}.add(
        rule_json(rule_));
  }

  [[nodiscard]] json_object number_json(const arithmetic_result& result) const {
    const auto operand = [&](const arith_operand& one) {
      json_object members = {{"input", one.text}};
      return members.add(code_json(from_, one.code)).add("inexact", one.inexact).on_one_line();
    };
    json_object members = code_json(to_, result.code);
    return {{"operands", json_rows(operands_, operand)},
            {"result", members.add("flags", json_list(names_of(result.raised))).on_one_line()}};
  }

  [[nodiscard]] json_object files_json(const arith_elements& elements) const {
    const auto operand = [&](const arith_operand& one) {
      return json_line({{"input", one.text},
                        {"rounded", one.file      ? one.rounded
                                    : one.inexact ? count_
                                                  : 0}});
    };
    json_object members = {{"operands", json_rows(operands_, operand)}, {"output", out_}};
    if (!flags_.empty()) members.add("flags_output", flags_);
    return members.add({{"count", count_},
                        {"shape", shape_},
                        {"raised", counts_json(named_flags, elements.raised)}});
  }

  [[nodiscard]] std::string table(const arithmetic_result& result, const terminal& term) const {
    std::string text;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const arith_operand& one = operands_[i];
      text += number_line(left(operand_names[i], 9), from_, one.code,
                          one.inexact ? "rounded from " + escape(one.text, 60) : "");
    }
    const std::string raised = joined(names_of(result.raised));
    const bool only_inexact = result.raised == flags::inexact;
    return text +
           number_line(left(op_, 9), to_, result.code,
                       raised.empty()
                           ? "no flags"
                           : term.painted(only_inexact ? paint::caution : paint::bad, raised));
  }

  [[nodiscard]] std::string notes(const tensor_target& target,
                                  const arith_elements& elements) const {
    std::string text;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const arith_operand& one = operands_[i];
      if (!one.file || one.file->format() == from_) continue;
      text += cat(operand_names[i], ": ", one.rounded, " of ", number_of(count_, "element"), " of ",
                  type_text(one.file->info, one.file->how), " were inexact in ", from_, "\n");
    }
    text += cat(target.shown(), ": ", number_of(count_, "element"), " ", shape_text(shape_), ", ",
                op_, " of ", from_, " -> ", to_, " (", rule_text(rule_), ");");
    for (std::size_t f = 0; f < named_flags.size(); ++f) {
      text += cat(f == 0 ? " " : ", ", elements.raised[f], " ", named_flags[f].name);
    }
    return text + "\n";
  }

  operation operation_ = operation::add;
  format_id from_ = format_id::fp32;
  format_id to_ = format_id::fp32;
  std::vector<arith_operand> operands_;
  bool has_files_ = false;
  std::vector<std::uint64_t> shape_;  ///< shape of the files; empty for numbers only
  std::uint64_t count_ = 1;
};

const registered arith_here("arith", "Compute with numbers of a format", 130,
                            run_of<arith_command>);

}  // namespace
}  // namespace fpinspect
