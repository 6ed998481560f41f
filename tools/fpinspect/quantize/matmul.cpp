// `fpinspect matmul`: computes a matrix product as a tensor core returns it, and its error.
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/quantize/matmul_source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/error.hpp"
#include "samebits/matmul.hpp"
#include "samebits/reductions.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::product_error;

/// The parsed request and its results.
struct matrix_product {
  format_id a_format = format_id::e4m3;
  format_id b_format = format_id::e4m3;
  samebits::accumulator sum = samebits::accumulator::exact();
  samebits::evidence level = samebits::evidence::none;
  const char* source = "";  ///< source of the tensor core row
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t depth = 0;
  std::vector<float> d;
  bool compared = false;
  std::string integers;       ///< notes on operands that contain integer values
  bool values_given = false;  ///< A or B was given as values: the error includes their rounding
  product_error error;        ///< relative to the exact product of the given operands
  double operand_noise = 0;   ///< sum of squared errors from rounding A and B
  double accumulation_noise = 0;
  double rounding_noise = 0;
};

/// The exact product of the operands, in binary64.
std::vector<double> exact_product(const samebits::const_matrix_view& a,
                                  const samebits::const_matrix_view& b,
                                  const samebits::matmul_options& options,
                                  const samebits::executor& where) {
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

void compare(matrix_product& p, const product_operand& a, const product_operand& b,
             const samebits::matmul_options& options, const samebits::executor& where) {
  const auto d = samebits::view_of(static_cast<const float*>(p.d.data()), p.rows, p.cols);
  const auto view = [&](const std::vector<double>& x) {
    return samebits::view_of(x.data(), p.rows, p.cols);
  };
  const std::vector<double> of_codes = exact_product(a.codes(), b.codes(), options, where);
  p.compared = true;
  p.error = samebits::error_of(d, view(of_codes));
  p.accumulation_noise = p.error.accumulation_noise;
  p.rounding_noise = p.error.rounding_noise;
  if (!p.values_given) return;
  const std::vector<double> of_values = exact_product(a.values(), b.values(), options, where);
  p.error = samebits::error_of(d, view(of_values));
  p.operand_noise = squares_between(of_codes, of_values);
}

matrix_product product_of(const matmul_arguments& arguments) {
  matrix_product p;
  p.a_format = format_argument("--format-a", arguments.format_a);
  p.b_format = format_argument("--format-b", arguments.format_b);
  const samebits::tensor_unit unit = unit_argument("--unit", arguments.unit);
  const std::uint64_t promotion =
      unsigned_argument("--promote", arguments.promote, 0, std::uint64_t{1} << 62);
  if (!arguments.against.empty() && arguments.against != "exact") {
    throw usage_error(
        cat("--against: ", samebits::tensor_file::quote(arguments.against), " is not exact"));
  }
  p.sum = samebits::accumulator::tensor_core(unit, static_cast<std::int64_t>(promotion));
  const samebits::executor where = host_backend_argument(arguments.backend);
  try {
    p.level = samebits::evidence_of(p.sum, p.a_format, p.b_format);
  } catch (const samebits::unsupported& error) {
    throw usage_error(cat("--unit: ", error.what()));
  } catch (const samebits::invalid_argument&) {
    throw usage_error(
        cat("--promote: ", promotion, " is no multiple of an instruction's products"));
  }
  const auto operands = samebits::tensor_operands_of(p.a_format, p.b_format);
  p.source = samebits::find_tensor_row(unit, *operands)->source;

  const file_layout b_layout = arguments.trans_b ? file_layout::transposed : file_layout::as_is;
  const product_operand a("A", arguments.a, "--from-a", arguments.from_a, p.a_format,
                          file_layout::as_is);
  const product_operand b("B", arguments.b, "--from-b", arguments.from_b, p.b_format, b_layout);
  const auto note = [&](const char* which, const char* option, const product_operand& x) {
    if (!x.holds_integer_values()) return;
    p.integers += cat("note: the integers of ", which, " are values; ", option,
                      " says of which format they are codes\n");
  };
  note("A", "--from-a", a);
  note("B", "--from-b", b);
  p.rows = a.codes().rows;
  p.depth = a.codes().cols;
  p.cols = b.codes().cols;
  if (b.codes().rows != p.depth) {
    throw usage_error(cat("B: K is ", b.codes().rows, ", that of A ", p.depth,
                          arguments.trans_b ? "" : "; --trans-b takes B as [N, K]"));
  }
  p.values_given = a.was_rounded() || b.was_rounded();
  const product_scales a_scales("--scale-a", arguments.scale_a, operand_side::a, file_layout::as_is,
                                a.codes());
  const product_scales b_scales("--scale-b", arguments.scale_b, operand_side::b, b_layout,
                                b.codes());
  const samebits::matmul_options options = {a_scales.scales(), b_scales.scales()};
  p.d.resize(static_cast<std::size_t>(p.rows * p.cols));
  try {
    samebits::matmul(a.codes(), b.codes(), samebits::view_of(p.d.data(), p.rows, p.cols), p.sum,
                     options, where);
  } catch (const samebits::invalid_argument&) {  // all other arguments have been checked
    throw usage_error("--promote: scales of 128 along K need 128");
  }
  if (!arguments.against.empty()) compare(p, a, b, options, where);
  return p;
}

double share(double part, const matrix_product& p) {
  const double all = p.accumulation_noise + p.operand_noise + p.rounding_noise;
  return all == 0 ? 0 : part / all;
}

double relative_error(const product_error& e) {
  return e.signal == 0 ? 0 : std::sqrt(e.noise / e.signal);
}

void write_product_json(const matmul_arguments& arguments, const matrix_product& p, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("a", arguments.a);
  json.member("b", arguments.b);
  json.member("output", arguments.out);
  json.member("format_a", samebits::name(p.a_format));
  json.member("format_b", samebits::name(p.b_format));
  const std::uint64_t shape[] = {static_cast<std::uint64_t>(p.rows),
                                 static_cast<std::uint64_t>(p.cols)};
  json.member("shape", std::span<const std::uint64_t>(shape));
  json.member("depth", p.depth);
  json.member("unit", samebits::name(p.sum.unit));
  json.member("promotion", p.sum.promotion);
  json.member("evidence", samebits::name(p.level));
  json.member("source", p.source);
  json.key("error");  // null: not compared
  if (!p.compared) {
    json.value(std::nullopt);
  } else {
    const product_error& e = p.error;
    json.begin_object();
    json.member("against", p.values_given ? "values" : "codes");
    json.member("count", e.count);
    json.member("nonfinite", e.nonfinite);
    json.member("unequal", e.unequal);
    json.member("mean", e.mean);
    json.member("max", e.max);
    json.member("relative", relative_error(e));
    json.member("accumulation_share", share(p.accumulation_noise, p));
    json.member("rounding_share", share(p.rounding_noise, p));
    json.member("operands_share", share(p.operand_noise, p));
    json.key("octaves");
    json.value(std::span<const std::uint64_t>(e.octaves));
    json.end_object();
  }
  json.end_object();
  out.write(json.document());
}

std::string percent(double part) { return general(100 * part, 3) + " %"; }

void write_error(const matrix_product& p, const terminal& term, output& out) {
  const product_error& e = p.error;
  out.write(term.painted(paint::heading, cat("error against the exact product of the ",
                                             p.values_given ? "values" : "codes", "\n")));
  out.write(cat("  elements       ", e.count, ", ", e.unequal, " with an error, ", e.nonfinite,
                " not finite\n"));
  out.write("  mean           " + scientific(e.mean, 3) + "\n");
  out.write("  max            " + scientific(e.max, 3) + "\n");
  out.write("  relative       " + scientific(relative_error(e), 3) +
            ", root of sum of squares over that of the exact values\n");
  out.write("  accumulation   " + percent(share(p.accumulation_noise, p)) +
            " of the squares of its parts\n");
  out.write("  rounding to D  " + percent(share(p.rounding_noise, p)) + "\n");
  if (p.values_given) {
    out.write("  operands       " + percent(share(p.operand_noise, p)) + "\n");
  }
  out.write(term.painted(paint::heading, "|error| / |exact|  elements\n"));
  for (std::size_t i = 0; i < e.octaves.size(); ++i) {
    if (e.octaves[i] == 0) continue;
    const bool last = i + 1 == e.octaves.size();
    const std::string bound = last ? cat("< 2^-", i) : cat("2^-", i + 1);
    const std::string upward = i == 0 ? " and more" : last ? "" : cat(" .. 2^-", i);
    out.write("  " + left(bound + upward, 17) + right(std::to_string(e.octaves[i]), 8) + "\n");
  }
}

void write_notes(const tensor_target& target, const matrix_product& p) {
  std::string line = cat(
      target.shown(), ": [", p.rows, ", ", p.cols, "] over ", p.depth, ", ",
      samebits::name(p.a_format), " x ", samebits::name(p.b_format), " by ",
      samebits::name(p.sum.unit), ", ",
      p.sum.promotion == 0 ? std::string("no promotion") : cat("promotion every ", p.sum.promotion),
      "\n");
  line += p.integers;
  if (p.level != samebits::evidence::hardware) {
    line += cat("note: this unit is not confirmed on hardware by this project; evidence: ",
                samebits::name(p.level), ", ", p.source, "\n");
  }
  static_cast<void>(std::fputs(line.c_str(), stderr));
}

}  // namespace

void run_matmul(const matmul_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const tensor_target target("--out", arguments.out);
  const matrix_product p = product_of(arguments);
  const std::uint64_t shape[] = {static_cast<std::uint64_t>(p.rows),
                                 static_cast<std::uint64_t>(p.cols)};
  target.write("d", format_id::fp32, shape, std::as_bytes(std::span(p.d)), out);
  if (arguments.view.json) return write_product_json(arguments, p, out);
  write_notes(target, p);
  if (!p.compared) return;
  output report(target.is_standard_output() ? STDERR_FILENO : STDOUT_FILENO);
  write_error(p, term, report);
  report.flush();
}

}  // namespace fpinspect
