// `fpinspect quantize`: a tensor as 8-bit codes with a scale per tile, in a .safetensors file.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fpinspect/arguments.hpp"
#include "fpinspect/commands.hpp"
#include "fpinspect/error.hpp"
#include "fpinspect/json_writer.hpp"
#include "fpinspect/quantize_arguments.hpp"
#include "fpinspect/source.hpp"
#include "fpinspect/tensor_stats.hpp"
#include "fpinspect/text.hpp"
#include "samebits/format.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/safetensors.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::matrix_shape;
using samebits::quantize_statistics;
using samebits::tensor_file::dtype;
using samebits::tensor_file::named_tensor;

/// What is asked for, understood.
struct quantization {
  format_id to = format_id::e4m3;
  samebits::quantize_options options;
  samebits::executor where;
  bool transposed = false;
};

quantization quantization_of(const quantize_arguments& arguments) {
  quantization plan;
  plan.to = code_format_argument("--to", arguments.to);
  const samebits::convert_options rule = rule_argument(arguments.rule);
  samebits::quantize_options& o = plan.options;
  o.tile = tile_argument("--block", arguments.block);
  o.math = scale_math_argument("--scale", arguments.scale);
  o.eps = bound_argument("--eps", arguments.eps);
  if (!arguments.upper_bound.empty()) {
    o.upper_bound = bound_argument("--upper-bound", arguments.upper_bound);
    if (o.upper_bound == 0) throw usage_error("--upper-bound: must be above 0");
  }
  o.on_nonfinite = nonfinite_argument("--nonfinite", arguments.nonfinite);
  o.round = rule.round;
  if (o.round != samebits::rounding::nearest_even && o.round != samebits::rounding::stochastic) {
    throw usage_error("--round: quantize takes nearest_even or stochastic, not " +
                      arguments.rule.round);
  }
  o.on_overflow = rule.on_overflow;
  o.on_nan = rule.on_nan;
  o.random = rule.random;
  plan.where = quantizing_backend_argument(arguments.backend);
  plan.transposed = arguments.transposed;
  return plan;
}

/// Leading dimensions merge into rows; rank 1 is one row.
matrix_shape matrix_of(const samebits::tensor_file::tensor_info& info) {
  if (info.shape.empty()) return {1, 1};
  std::uint64_t rows = 1;
  for (std::size_t k = 0; k + 1 < info.shape.size(); ++k) rows *= info.shape[k];
  return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(info.shape.back())};
}

void require_quantizable(const source_tensor& source, const std::string& input) {
  for (const format_id f : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    if (source.format == f) return;
  }
  throw samebits::tensor_file::file_error(
      samebits::tensor_file::error_kind::unsupported,
      samebits::tensor_file::escape_path(input) + ": elements are " +
          std::string(samebits::name(source.format)) + "; fp32, fp16 and bf16 are quantized");
}

/// A matrix of codes in memory and in the file.
struct owned_matrix {
  owned_matrix(format_id f, const matrix_shape& s)
      : format(f),
        shape(s),
        bytes(static_cast<std::size_t>(s.rows * s.cols * samebits::storage_bytes(f))) {}

  samebits::matrix_view view() {
    return samebits::view_of_codes(format, bytes.data(), shape.rows, shape.cols);
  }
  named_tensor tensor(std::string name, dtype type) const {
    return {std::move(name),
            type,
            {static_cast<std::uint64_t>(shape.rows), static_cast<std::uint64_t>(shape.cols)},
            bytes};
  }

  format_id format;
  matrix_shape shape;
  std::vector<std::byte> bytes;
};

matrix_shape turned(const matrix_shape& s) { return {s.cols, s.rows}; }

/// What the file says of itself, for `dequantize` and for people.
std::vector<std::pair<std::string, std::string>> metadata_of(const quantization& plan) {
  return {{"samebits.block", block_text(plan.options.tile)},
          {"samebits.scale", std::string(samebits::name(plan.options.math))}};
}

/// Quantizes and writes OUT.
quantize_statistics run(const source_tensor& source, const quantization& plan,
                        const std::string& path) {
  const matrix_shape shape = matrix_of(source.info);
  const matrix_shape tiles = samebits::scales_shape(shape.rows, shape.cols, plan.options.tile);
  const auto direct = source.file.view_codes(source.info);
  std::vector<std::byte> read;
  if (!direct) {
    const auto width = static_cast<std::uint64_t>(samebits::storage_bytes(source.format));
    read.resize(source.info.count * width);
    source.file.read_codes(source.info, 0, source.info.count, read.data());
  }
  const samebits::const_matrix_view in = samebits::view_of_codes(
      source.format, static_cast<const void*>(direct ? direct->data() : read.data()), shape.rows,
      shape.cols);

  quantize_statistics statistics;
  owned_matrix codes(plan.to, shape);
  owned_matrix scales(format_id::fp32, tiles);
  owned_matrix codes_t(plan.to, plan.transposed ? turned(shape) : matrix_shape{});
  owned_matrix scales_t(format_id::fp32, plan.transposed ? turned(tiles) : matrix_shape{});
  samebits::quantize_outputs outputs = {.codes = codes.view(), .scales = scales.view()};
  if (plan.transposed) {
    outputs.codes_transposed = codes_t.view();
    outputs.scales_transposed = scales_t.view();
  }
  outputs.statistics = &statistics;
  samebits::quantize(in, outputs, plan.options, plan.where);

  const dtype type = plan.to == format_id::e4m3 ? dtype::f8_e4m3 : dtype::f8_e5m2;
  std::vector<named_tensor> tensors = {scales.tensor("scales", dtype::f32)};
  if (plan.transposed) tensors.push_back(scales_t.tensor("scales_t", dtype::f32));
  tensors.push_back(codes.tensor("codes", type));
  if (plan.transposed) tensors.push_back(codes_t.tensor("codes_t", type));
  samebits::tensor_file::write_safetensors(path, tensors, metadata_of(plan));
  return statistics;
}

void write_shape(json_writer& json, std::string_view name, std::int64_t rows, std::int64_t cols) {
  const std::uint64_t both[] = {static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols)};
  json.key(name);
  json.value(std::span<const std::uint64_t>(both));
}

void write_json(const quantize_arguments& arguments, const source_tensor& source,
                const quantization& plan, const quantize_statistics& s, output& out) {
  const samebits::quantize_options& o = plan.options;
  const matrix_shape shape = matrix_of(source.info);
  const matrix_shape tiles = samebits::scales_shape(shape.rows, shape.cols, o.tile);
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("input", arguments.input);
  json.member("output", arguments.output);
  json.member("from", samebits::name(source.format));
  json.member("to", samebits::name(plan.to));
  write_shape(json, "block", o.tile.rows, o.tile.cols);
  json.member("scale", samebits::name(o.math));
  json.member("eps", static_cast<double>(o.eps));
  json.member("upper_bound", static_cast<double>(o.upper_bound));
  json.member("nonfinite", samebits::name(o.on_nonfinite));
  json.member("round", samebits::name(o.round));
  json.member("overflow", samebits::name(o.on_overflow));
  json.member("nan", samebits::name(o.on_nan));
  if (o.round == samebits::rounding::stochastic) {
    json.member("seed", o.random.seed);
    json.member("stream", o.random.stream);
    json.member("offset", o.random.offset);
    json.member("random_bits", o.random.bits);
  }
  json.member("transposed", plan.transposed);
  json.key("backend");  // null: the choice of the call
  if (plan.where.backend.empty()) {
    json.value(std::nullopt);
  } else {
    json.value(plan.where.backend);
  }
  write_shape(json, "codes_shape", shape.rows, shape.cols);
  write_shape(json, "scales_shape", tiles.rows, tiles.cols);
  json.member("sqnr_db", sqnr_db(s.signal, s.noise));
  json.member("underflowed", s.underflowed);
  json.member("saturated", s.saturated);
  json.key("statistics");
  json.begin_object();
  json.member("count", s.count);
  json.member("zeros", s.zeros);
  json.member("nan", s.nan);
  json.member("inf", s.inf);
  json.member("amax", static_cast<double>(s.amax));
  json.member("min_nonzero", static_cast<double>(s.min_nonzero));
  json.member("signal", s.signal);
  json.member("noise", s.noise);
  json.end_object();
  json.end_object();
  out.write(json.document());
}

std::string share(std::uint64_t part, std::uint64_t all) {
  if (part == 0 || all == 0) return cat(part);
  return cat(part, " (", general(100.0 * static_cast<double>(part) / static_cast<double>(all), 3),
             " %)");
}

std::string sqnr_text(const quantize_statistics& s) {
  if (const auto db = sqnr_db(s.signal, s.noise)) return fixed(*db, 1) + " dB";
  return s.noise == 0 ? "exact" : "-";
}

void write_report(const quantize_arguments& arguments, const source_tensor& source,
                  const quantization& plan, const quantize_statistics& s, output& out) {
  const samebits::quantize_options& o = plan.options;
  const matrix_shape shape = matrix_of(source.info);
  const matrix_shape tiles = samebits::scales_shape(shape.rows, shape.cols, o.tile);
  const auto size = [](const char* name, const matrix_shape& m) {
    return cat(name, " [", m.rows, ", ", m.cols, "]");
  };
  std::string line =
      cat(samebits::tensor_file::escape_path(arguments.output), ": ", size("codes", shape), " ",
          samebits::name(plan.to), ", ", size("scales", tiles), " fp32");
  if (plan.transposed) {
    line += cat(", ", size("codes_t", turned(shape)), ", ", size("scales_t", turned(tiles)));
  }
  out.write(line + "\n");
  out.write(cat("  from ", samebits::name(source.format), ", block ", block_text(o.tile), ", ",
                samebits::name(o.math), ", ", samebits::name(o.round), ", ",
                samebits::name(o.on_overflow), "\n"));
  out.write(cat("  SQNR ", sqnr_text(s), "   underflowed ", share(s.underflowed, s.count),
                "   saturated ", share(s.saturated, s.count), "\n"));
  out.write(cat("  ", s.count, " elements   zeros ", share(s.zeros, s.count), "   NaN ", s.nan,
                "   Inf ", s.inf, "\n"));
  out.write(cat("  amax ", general(static_cast<double>(s.amax), 6), "   smallest non-zero ",
                general(static_cast<double>(s.min_nonzero), 6), "\n"));
}

}  // namespace

void run_quantize(const quantize_arguments& arguments, output& out) {
  const quantization plan = quantization_of(arguments);
  const source_tensor source = open_source(arguments.input, arguments.from);
  require_quantizable(source, arguments.input);
  const quantize_statistics statistics = run(source, plan, arguments.output);
  if (arguments.view.json) {
    write_json(arguments, source, plan, statistics, out);
  } else {
    write_report(arguments, source, plan, statistics, out);
  }
}

}  // namespace fpinspect
