// `fpinspect matmul`: computes a matrix product as a tensor core returns it, and its error.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "samebits/matmul.hpp"
#include "samebits/reductions.hpp"

namespace fpinspect {
namespace {

using samebits::product_error;

// --- Operands and scales -------------------------------------------------------------------------

/// Whether the file stores the operand as it is or transposed.
enum class file_layout : std::uint8_t { as_is, transposed };

const_matrix_view transposed_if(file_layout how, const const_matrix_view& v) {
  return how == file_layout::transposed ? samebits::transposed(v) : v;
}

/// Parses a complete text as a positive decimal number; returns false for any other text.
bool parse_scale(const std::string& text, float& scale) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, scale);
  return error == std::errc() && stop == end && std::isfinite(scale);
}

/// Finds the tile shape that belongs to scales of this shape. `operand` is in storage order;
/// `k_last` says that K runs along its columns.
bool find_scale_tile(const matrix_shape& scales, const const_matrix_view& operand, bool k_last,
                     tile_shape& tile) {
  const std::array<tile_shape, 4> along = {tile_shape{0, 0}, tile_shape{1, 0}, tile_shape{1, 128},
                                           tile_shape{128, 128}};
  for (const tile_shape& t : along) {
    tile = k_last ? t : tile_shape{t.cols, t.rows};
    if (samebits::scales_shape(operand.rows, operand.cols, tile) == scales) return true;
  }
  return false;
}

/// One operand of a product.
struct product_operand {
  /// @param which  the operand's name in errors
  /// @param input  values, which are rounded to nearest even to `format`, or codes of `format`
  /// @param option  the name of `from` in errors
  /// @param from  the format of codes that are stored as integers, or empty
  /// @throws usage_error  if the tensor does not have two dimensions, or for fp64
  /// @note Also throws as open_source() does.
  product_operand(std::string_view which, const std::string& input, std::string_view option,
                  const std::string& from, format_id format, file_layout how)
      : source(open_source(which, input, option, from)) {
    const auto& info = source.info;
    if (info.shape.size() != 2) {
      throw usage_error(
          cat(which, ": must have two dimensions, got [", comma_separated(info.shape), "]"));
    }
    if (source.format() == format_id::fp64) {
      throw usage_error(cat(which, ": ", type_text(info, source.how),
                            " values are not taken; `fpinspect convert` them first"));
    }
    read = matrix_of(source);
    values = codes = transposed_if(how, read.view);
    if (source.format() == format) return;
    rounded.emplace(format, matrix_of(info));
    samebits::convert(read.view, rounded->view());
    codes = transposed_if(how, rounded->view());
  }

  [[nodiscard]] bool was_rounded() const { return rounded && !rounded->bytes.empty(); }

  source_tensor source;
  const_matrix_view values;  ///< from which the codes were rounded; the codes if they were given
  const_matrix_view codes;

 private:
  source_matrix read;
  std::optional<owned_matrix> rounded;
};

/// The operand to which scales belong. It determines which dimension is K.
enum class operand_side : std::uint8_t { a, b };

/// Scales of an operand: a number, or an fp32 tensor whose shape determines the tiles.
struct product_scales {
  /// @param text  a positive decimal number, a FILE, or empty for no scales
  /// @param operand  [M, K] or [K, N]; the scale tensor is in the operand's storage order
  /// @throws usage_error  for invalid scales; the message names `option`
  /// @throws file_error  if the file cannot be read
  product_scales(std::string_view option, const std::string& text, operand_side side,
                 file_layout how, const const_matrix_view& operand) {
    if (text.empty()) return;
    float number = 0;
    if (parse_scale(text, number)) {
      values = {number};
      scales = {samebits::view_of(values.data(), 1, 1), {0, 0}};
      return;
    }
    const source_tensor source = open_source(option, text, option, "");
    const auto& info = source.info;
    if (source.format() != format_id::fp32 || source.how.integer_values || info.shape.size() > 2) {
      throw usage_error(cat(option, ": scales are fp32 in at most two dimensions, got ",
                            type_text(info, source.how), " [", comma_separated(info.shape), "]"));
    }
    values.resize(info.count);
    source.read(0, info.count, reinterpret_cast<std::byte*>(values.data()));
    const const_matrix_view as_stored = transposed_if(how, operand);
    const bool k_last = (side == operand_side::a) == (how == file_layout::as_is);
    const auto extent = [&](std::size_t i) { return static_cast<std::int64_t>(info.shape[i]); };
    const auto count = static_cast<std::int64_t>(info.count);
    const bool flat = info.shape.size() < 2;  // one scale per row or column
    const matrix_shape shape = !flat    ? matrix_shape{extent(0), extent(1)}
                               : k_last ? matrix_shape{count, 1}
                                        : matrix_shape{1, count};
    tile_shape tile;
    if (!find_scale_tile(shape, as_stored, k_last, tile)) {
      throw usage_error(cat(option, ": [", comma_separated(info.shape),
                            "] scales fit no tiles of [", as_stored.rows, ", ", as_stored.cols,
                            "]: one, one for each row of A or column of B, of 128 along K, or of "
                            "128 x 128"));
    }
    const const_matrix_view view =
        samebits::view_of(static_cast<const float*>(values.data()), shape.rows, shape.cols);
    scales = {transposed_if(how, view),
              how == file_layout::transposed ? tile_shape{tile.cols, tile.rows} : tile};
  }

  std::vector<float> values;
  samebits::operand_scales scales;
};

// --- The product and its error -------------------------------------------------------------------

/// The exact product of the operands, in binary64.
std::vector<double> exact_product(const const_matrix_view& a, const const_matrix_view& b,
                                  const samebits::matmul_options& options, const executor& where) {
  std::vector<double> exact(static_cast<std::size_t>(a.rows * b.cols));
  samebits::matmul(a, b, samebits::view_of(exact.data(), a.rows, b.cols),
                   samebits::accumulator::exact(), options, where);
  return exact;
}

double squares_between(const std::vector<double>& x, const std::vector<double>& y) {
  samebits::tree_sum sum;
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
 public:
  void options(option_list& add) override {
    add.required("A", a_, "[M, K]: FILE.npy, .npz, .safetensors, .gguf or .pt, FILE#TENSOR, or -");
    add.required("B", b_, "[K, N], the same");
    add.required("--format-a", a_format_, format_argument, "Format that A is multiplied in");
    add.required("--format-b", b_format_, format_argument, "The same of B");
    add.text("--from-a", from_a_, "A's integers are codes of this format");
    add.text("--from-b", from_b_, "The same of B");
    add.flag("--trans-b", trans_b_, "B is [N, K]");
    add.text("--scale-a", scale_a_, "Dequantization scales of A: a number or FILE");
    add.text("--scale-b", scale_b_, "The same of B");
    add.required("--unit", unit_, enumerator_argument<samebits::tensor_unit>,
                 "Tensor core, see `fpinspect units`");
    add.required("--promotion", promotion_, integer(0, std::uint64_t{1} << 62),
                 "Elements of K between promotions into fp32; 0: none");
    add.text("--against", against_, "exact: report the error");
    add.required("--out", out_, "Where D goes: FILE.npy, FILE.safetensors or -");
    add.text("--backend", backend_, "Where to compute (default: the best here)");
    add.refuse_json_beside("--out", out_);
  }

  void run(const session& s) override {
    const tensor_target target("--out", out_);
    multiply();
    target.write("d", format_id::fp32, shape(), std::as_bytes(std::span(d_)), s.out);
    if (s.json) return write_json(s);
    static_cast<void>(std::fputs(notes(target).c_str(), stderr));
    if (compared()) s.report(error_text(s.term), target.is_standard_output());
  }

 private:
  [[nodiscard]] bool compared() const { return !against_.empty(); }
  [[nodiscard]] std::vector<std::uint64_t> shape() const { return extents_of({rows_, cols_}); }

  void multiply() {
    if (compared() && against_ != "exact") refuse_value("--against", against_, "is not exact");
    sum_ = samebits::accumulator::tensor_core(unit_, static_cast<std::int64_t>(promotion_));
    const executor where = host_backend_argument(backend_);
    check_unit();
    const file_layout b_layout = trans_b_ ? file_layout::transposed : file_layout::as_is;
    const product_operand a("A", a_, "--from-a", from_a_, a_format_, file_layout::as_is);
    const product_operand b("B", b_, "--from-b", from_b_, b_format_, b_layout);
    note_integers("A", "--from-a", a);
    note_integers("B", "--from-b", b);
    rows_ = a.codes.rows;
    depth_ = a.codes.cols;
    cols_ = b.codes.cols;
    if (b.codes.rows != depth_) {
      throw usage_error(cat("B: K is ", b.codes.rows, ", that of A ", depth_,
                            trans_b_ ? "" : "; --trans-b takes B as [N, K]"));
    }
    values_given_ = a.was_rounded() || b.was_rounded();
    const product_scales a_scales("--scale-a", scale_a_, operand_side::a, file_layout::as_is,
                                  a.codes);
    const product_scales b_scales("--scale-b", scale_b_, operand_side::b, b_layout, b.codes);
    const samebits::matmul_options options = {a_scales.scales, b_scales.scales};
    d_.resize(static_cast<std::size_t>(rows_ * cols_));
    try {
      samebits::matmul(a.codes, b.codes, samebits::view_of(d_.data(), rows_, cols_), sum_, options,
                       where);
    } catch (const samebits::invalid_argument&) {  // all other arguments have been checked
      throw usage_error("--promotion: scales of 128 along K need 128");
    }
    if (compared()) compare(a, b, options, where);
  }

  void check_unit() {
    try {
      level_ = samebits::evidence_of(sum_, a_format_, b_format_);
    } catch (const samebits::unsupported& error) {
      throw usage_error(cat("--unit: ", error.what()));
    } catch (const samebits::invalid_argument&) {
      throw usage_error(
          cat("--promotion: ", promotion_, " is no multiple of an instruction's products"));
    }
    const auto operands = samebits::tensor_operands_of(a_format_, b_format_);
    source_ = samebits::find_tensor_row(unit_, *operands)->source;
  }

  void note_integers(const char* which, const char* option, const product_operand& x) {
    if (!x.source.how.integer_values) return;
    integers_ += cat("note: the integers of ", which, " are values; ", option,
                     " says of which format they are codes\n");
  }

  void compare(const product_operand& a, const product_operand& b,
               const samebits::matmul_options& options, const executor& where) {
    const auto d = samebits::view_of(static_cast<const float*>(d_.data()), rows_, cols_);
    const auto view = [&](const std::vector<double>& x) {
      return samebits::view_of(x.data(), rows_, cols_);
    };
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
    s.write_json({{"a", a_},
                  {"b", b_},
                  {"output", out_},
                  {"format_a", samebits::name(a_format_)},
                  {"format_b", samebits::name(b_format_)},
                  {"shape", shape()},
                  {"depth", depth_},
                  {"unit", samebits::name(unit_)},
                  {"promotion", sum_.promotion},
                  {"evidence", samebits::name(level_)},
                  {"source", source_},
                  {"error", error}});
  }

  [[nodiscard]] std::string error_text(const terminal& term) const {
    const product_error& e = error_;
    std::string text =
        term.painted(paint::heading, cat("error against the exact product of the ",
                                         values_given_ ? "values" : "codes", "\n")) +
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
    std::string text = cat(target.shown(), ": [", rows_, ", ", cols_, "] over ", depth_, ", ",
                           samebits::name(a_format_), " x ", samebits::name(b_format_), " by ",
                           samebits::name(unit_), ", ", promotion, "\n", integers_);
    if (level_ == samebits::evidence::hardware) return text;
    return cat(text, "note: this unit is not confirmed on hardware by this project; evidence: ",
               samebits::name(level_), ", ", source_, "\n");
  }

  std::string a_;
  std::string b_;
  format_id a_format_ = format_id::e4m3;
  format_id b_format_ = format_id::e4m3;
  std::string from_a_;
  std::string from_b_;
  bool trans_b_ = false;
  std::string scale_a_;
  std::string scale_b_;
  samebits::tensor_unit unit_{};
  std::uint64_t promotion_ = 0;
  std::string against_;
  std::string out_;
  std::string backend_;

  samebits::accumulator sum_ = samebits::accumulator::exact();
  samebits::evidence level_ = samebits::evidence::none;
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

const registered<matmul_command> matmul_here("matmul", "Multiply matrices as a tensor core does",
                                             140);

}  // namespace
}  // namespace fpinspect
