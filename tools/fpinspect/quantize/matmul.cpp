// `fpinspect matmul`: computes a matrix product as a tensor core returns it, and its error; or finds
// how a product was computed.
#include "fpinspect/quantize/product_operands.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/error.hpp"
#include "samebits/product_rule.hpp"
#include "samebits/reductions.hpp"

namespace fpinspect {
namespace {

// --- The product and its error -------------------------------------------------------------------

/// The exact product of the operands, in binary64.
std::vector<double> exact_product(const const_matrix_view& a, const const_matrix_view& b,
                                  const matmul_options& options, const executor& where) {
  std::vector<double> exact(static_cast<std::size_t>(a.rows * b.cols));
  samebits::matmul(a, b, view_of(exact.data(), a.rows, b.cols), accumulator::exact(), options,
                   where);
  return exact;
}

double squares_between(const std::vector<double>& x, const std::vector<double>& y) {
  tree_sum sum;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - y[i];
    const double square = difference * difference;
    sum.add(std::isfinite(square) ? square : 0);
  }
  return sum.value();
}

double relative_error(const product_error& e) {
  return e.signal == 0 ? 0 : std::sqrt(e.noise / e.signal);
}

std::string percent(double part) { return general(100 * part, 3) + " %"; }

class matmul_command final : public command {
  std::string& a_ = add.required("A", cat("[M, K]: ", tensor_help));
  std::string& b_ = add.required("B", "[K, N], the same");
  format_id& a_format_ =
      add.required("--format-a", format_argument, "Format that A is multiplied in");
  format_id& b_format_ = add.required("--format-b", format_argument, "The same of B");
  std::string& from_a_ = add.text("--from-a", "A's integers are codes of this format");
  std::string& from_b_ = add.text("--from-b", "The same of B");
  bool& trans_b_ = add.flag("--trans-b", "B is [N, K]");
  std::string& scale_a_ = add.text("--scale-a", "Dequantization scales of A: a number or FILE");
  std::string& scale_b_ = add.text("--scale-b", "The same of B");
  std::optional<tensor_unit>& unit_ = add.optional_value("--unit", enumerator_argument<tensor_unit>,
                                                         "Tensor core, see `fpinspect units`");
  std::uint64_t& promotion_ = add.value("--promotion", integer(0, std::uint64_t{1} << 62),
                                        "Elements of K between promotions into fp32; 0: none");
  std::string& against_ = add.text("--against", "exact: report the error");
  std::string& out_ = add.text("--out", "Where D goes: FILE.npy, FILE.safetensors or -");
  std::string& find_ =
      add.text("--find", "D as a GPU returned it: print the rules that give its bits instead");
  std::string& c_ = add.text("--c", "C [M, N] or bias [N] that the D of --find contains");
  std::string& backend_ = add.text("--backend", "Where to compute (default: the best here)");

 public:
  explicit matmul_command(option_list& list) : command(list) {
    for (const char* name : {"--unit", "--promotion", "--out"}) {
      add.refuse([this, name] { return !add.given(name) && !add.given("--find"); },
                 cat(name, " is required"));
    }
    add.exclude("--find", {"--promotion", "--against", "--out"});
    add.need({"--c"}, "--find");
    add.refuse_json_beside("--out", out_);
  }

  void run(const session& s) {
    if (!find_.empty()) return find(s);
    const tensor_target target("--out", out_);
    multiply();
    target.write("d", format_id::fp32, shape(), std::as_bytes(std::span(d_)), s.out);
    if (s.json) return write_json(s);
    s.note(notes(target));
    if (compared()) s.report(error_text(s.term), target.is_standard_output());
  }

 private:
  [[nodiscard]] bool compared() const { return !against_.empty(); }
  [[nodiscard]] std::vector<std::uint64_t> shape() const { return extents_of({rows_, cols_}); }

  /// Reads the operands and their scales; calls use(a, b, options).
  template <class Use>
  void with_operands(const Use& use) {
    const file_layout b_layout = trans_b_ ? file_layout::transposed : file_layout::as_is;
    const product_operand a("A", a_, "--from-a", from_a_, a_format_, file_layout::as_is);
    const product_operand b("B", b_, "--from-b", from_b_, b_format_, b_layout);
    note_integers("A", "--from-a", a);
    note_integers("B", "--from-b", b);
    rows_ = a.codes.rows;
    depth_ = a.codes.cols;
    cols_ = b.codes.cols;
    refuse_if(b.codes.rows != depth_, "B: K is ", b.codes.rows, ", that of A ", depth_,
              trans_b_ ? "" : "; --trans-b takes B as [N, K]");
    values_given_ = a.was_rounded() || b.was_rounded();
    const product_scales a_scales("--scale-a", scale_a_, operand_side::a, file_layout::as_is,
                                  a.codes);
    const product_scales b_scales("--scale-b", scale_b_, operand_side::b, b_layout, b.codes);
    use(a, b, matmul_options{a_scales.scales, b_scales.scales});
  }

  void multiply() {
    if (compared() && against_ != "exact") refuse_value("--against", against_, "is not exact");
    sum_ = accumulator::tensor_core(*unit_, static_cast<std::int64_t>(promotion_));
    const executor where = host_backend_argument(backend_);
    check_unit();
    with_operands([&](const product_operand& a, const product_operand& b,
                      const matmul_options& options) {
      d_.resize(static_cast<std::size_t>(rows_ * cols_));
      try {
        samebits::matmul(a.codes, b.codes, view_of(d_.data(), rows_, cols_), sum_, options, where);
      } catch (const invalid_argument&) {  // all other arguments have been checked
        throw usage_error("--promotion: scales of 128 along K need 128");
      }
      if (compared()) compare(a, b, options, where);
    });
  }

  /// A tensor [M, N], or [N] if `may_repeat`, which is every row.
  const_matrix_view result_of(const char* option, const source_tensor& source,
                              const source_matrix& read, bool may_repeat) const {
    const auto& info = source.info;
    refuse_if(!is_quantizable(source.format()) || source.how.integer_values, option,
              ": fp32, fp16 or bf16 is expected, got ", type_text(info, source.how));
    const bool repeats = may_repeat && info.shape.size() == 1;
    const_matrix_view v = read.view;
    refuse_if((!repeats && (info.shape.size() != 2 || v.rows != rows_)) || v.cols != cols_, option,
              ": the product has [", rows_, ", ", cols_, "], got ", shape_text(info.shape));
    if (repeats) v.row_stride = 0;
    v.rows = rows_;
    return v;
  }

  void find(const session& s) {
    find_rule_options search;
    if (unit_) search.units = {*unit_};
    const executor where = host_backend_argument(backend_);
    std::vector<std::string> rules;
    with_operands(
        [&](const product_operand& a, const product_operand& b, const matmul_options& options) {
          const source_tensor d = open_source("--find", find_, "--find", "");
          const source_matrix d_read = matrix_of(d);
          search.known = options;
          std::optional<source_tensor> c;  // open as long as its elements are read
          source_matrix c_read;
          if (!c_.empty()) {
            c = open_source("--c", c_, "--c", "");
            c_read = matrix_of(*c);
            search.known.c = result_of("--c", *c, c_read, true);
          }
          for (const product_rule& rule : samebits::find_rule(
                   a.codes, b.codes, result_of("--find", d, d_read, false), search, where)) {
            rules.push_back(rule_text(rule));
          }
        });
    if (!s.json) s.note(integers_);
    s.write(json_of("find", find_).add("rules", json_list(rules)),
            joined(
                rules, [](const std::string& rule) { return rule + "\n"; }, ""));
    if (rules.empty()) throw check_failed("--find: no rule gives the bits of D");
  }

  void check_unit() {
    try {
      level_ = evidence_of(sum_, a_format_, b_format_);
    } catch (const unsupported& error) {
      throw usage_error("--unit: ", error.what());
    } catch (const invalid_argument&) {
      throw usage_error("--promotion: ", promotion_,
                        " is no multiple of an instruction's products");
    }
    const auto operands = tensor_operands_of(a_format_, b_format_);
    source_ = find_tensor_row(*unit_, *operands)->source;
  }

  void note_integers(const char* which, const char* option, const product_operand& x) {
    if (!x.source.how.integer_values) return;
    integers_ += cat("note: the integers of ", which, " are values; ", option,
                     " says of which format they are codes\n");
  }

  void compare(const product_operand& a, const product_operand& b, const matmul_options& options,
               const executor& where) {
    const auto d = view_of(static_cast<const float*>(d_.data()), rows_, cols_);
    const auto view = [&](const std::vector<double>& x) { return view_of(x.data(), rows_, cols_); };
    const std::vector<double> of_codes = exact_product(a.codes, b.codes, options, where);
    error_ = samebits::error_of(d, view(of_codes));
    accumulation_noise_ = error_.accumulation_noise;
    rounding_noise_ = error_.rounding_noise;
    if (!values_given_) return;
    const std::vector<double> of_values = exact_product(a.values, b.values, options, where);
    error_ = samebits::error_of(d, view(of_values));
    operand_noise_ = squares_between(of_codes, of_values);
  }

  [[nodiscard]] double share(double part) const {
    const double all = accumulation_noise_ + operand_noise_ + rounding_noise_;
    return all == 0 ? 0 : part / all;
  }

  /// The members of both documents: what was multiplied, and the file of D.
  [[nodiscard]] json_object json_of(std::string_view file, const std::string& d) const {
    return {{"a", a_},
            {"b", b_},
            {std::string(file), d},
            {"format_a", name(a_format_)},
            {"format_b", name(b_format_)},
            {"shape", shape()},
            {"depth", depth_}};
  }

  void write_json(const session& s) const {
    json_value error = std::nullopt;
    if (compared()) {
      const product_error& e = error_;
      error = json_object{{"against", values_given_ ? "values" : "codes"},
                          {"count", e.count},
                          {"nonfinite", e.nonfinite},
                          {"unequal", e.unequal},
                          {"mean", e.mean},
                          {"max", e.max},
                          {"relative", relative_error(e)},
                          {"accumulation_share", share(accumulation_noise_)},
                          {"rounding_share", share(rounding_noise_)},
                          {"operands_share", share(operand_noise_)},
                          {"octaves", std::span<const std::uint64_t>(e.octaves)}};
    }
    s.write_json(json_of("output", out_)
                     .add({{"unit", name(*unit_)},
                           {"promotion", sum_.promotion},
                           {"evidence", name(level_)},
                           {"source", source_},
                           {"error", error}}));
  }

  [[nodiscard]] std::string error_text(const terminal& term) const {
    const product_error& e = error_;
    std::string text =
        term.painted(paint::heading, "error against the exact product of the ",
                     values_given_ ? "values" : "codes", "\n") +
        cat("  elements       ", e.count, ", ", e.unequal, " with an error, ", e.nonfinite,
            " not finite\n  mean           ", scientific(e.mean, 3), "\n  max            ",
            scientific(e.max, 3), "\n  relative       ", scientific(relative_error(e), 3),
            ", root of sum of squares over that of the exact values\n  accumulation   ",
            percent(share(accumulation_noise_)), " of the squares of its parts\n  rounding to D  ",
            percent(share(rounding_noise_)), "\n");
    if (values_given_) text += cat("  operands       ", percent(share(operand_noise_)), "\n");
    text += term.painted(paint::heading, "|error| / |exact|  elements\n");
    for (std::size_t i = 0; i < e.octaves.size(); ++i) {
      if (e.octaves[i] == 0) continue;
      const bool last = i + 1 == e.octaves.size();
      const std::string bound = last ? cat("< 2^-", i) : cat("2^-", i + 1);
      const std::string upward = i == 0 ? " and more" : last ? "" : cat(" .. 2^-", i);
      text += cat("  ", left(bound + upward, 17), right(cat(e.octaves[i]), 8), "\n");
    }
    return text;
  }

  [[nodiscard]] std::string notes(const tensor_target& target) const {
    const std::string promotion =
        sum_.promotion == 0 ? "no promotion" : cat("promotion every ", sum_.promotion);
    std::string text =
        cat(target.shown(), ": [", rows_, ", ", cols_, "] over ", depth_, ", ", a_format_, " x ",
            b_format_, " by ", *unit_, ", ", promotion, "\n", integers_);
    if (level_ == evidence::hardware) return text;
    return cat(text,
               "note: this unit is not confirmed on hardware by this project; evidence: ", level_,
               ", ", source_, "\n");
  }

  accumulator sum_ = accumulator::exact();
  evidence level_ = evidence::none;
  const char* source_ = "";  ///< source of the tensor core row
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t depth_ = 0;
  std::vector<float> d_;
  std::string integers_;       ///< notes on operands that contain integer values
  bool values_given_ = false;  ///< A or B was given as values: the error includes their rounding
  product_error error_;        ///< relative to the exact product of the given operands
  double operand_noise_ = 0;   ///< sum of squared errors from rounding A and B
  double accumulation_noise_ = 0;
  double rounding_noise_ = 0;
};

const registered matmul_here("matmul", "Multiply matrices as a tensor core does", 140,
                             run_of<matmul_command>);

}  // namespace
}  // namespace fpinspect
