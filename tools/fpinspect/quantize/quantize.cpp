// `fpinspect quantize`: writes a tensor as 8-bit codes with one scale per tile to a .safetensors
// file.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/quantize/quantize_arguments.hpp"
#include "fpinspect/quantize/quantize_gate.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/quantize/sqnr.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/core/format.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"
#include "samebits/view.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/safetensors/safetensors.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::matrix_shape;
using samebits::quantize_statistics;
using samebits::tensor_file::named_tensor;

/// The parsed request.
struct quantization {
  format_id to = format_id::e4m3;
  samebits::quantize_options options;
  samebits::executor where;
  const samebits::recipe_preset* preset = nullptr;
  format_id scale_format = format_id::fp32;
  bool row = true;  ///< row, column: the wanted outputs
  bool column = false;
  bool transposed = false;
};

void set_outputs(const quantize_arguments& arguments, quantization& task) {
  task.transposed = arguments.transposed;  // --transposed excludes --outputs
  if (arguments.outputs.empty()) return;
  task.row = false;
  for (const std::string& output : arguments.outputs) {
    if (output == "row") {
      task.row = true;
    } else if (output == "col") {
      task.column = true;
    } else if (output == "transposed") {
      task.transposed = true;
    } else {
      throw usage_error("--outputs: " + samebits::tensor_file::quote(output) +
                        " is not one of row, col, transposed");
    }
  }
}

quantization quantization_of(const quantize_arguments& arguments) {
  quantization task;
  if (arguments.to.empty() && arguments.recipe.empty()) {
    throw usage_error("--to is required: e4m3 or e5m2");
  }
  if (!arguments.to.empty()) task.to = code_format_argument("--to", arguments.to);
  const samebits::convert_options rule = rule_argument(arguments.rule);
  samebits::quantize_options& o = task.options;
  if (!arguments.recipe.empty()) {
    task.preset = &recipe_argument("--recipe", arguments.recipe);
    o = options_of(task.preset->rules);
    task.scale_format = task.preset->rules.scale_format;
  } else {
    o.tile = tile_argument("--block", arguments.block);
    o.scale = scale_rule_argument("--scale-rule", arguments.scale);
    o.eps = bound_argument("--eps", arguments.eps);
    if (!arguments.upper_bound.empty()) {
      o.upper_bound = bound_argument("--upper-bound", arguments.upper_bound);
      if (o.upper_bound == 0) throw usage_error("--upper-bound: must be above 0");
      if (o.upper_bound < o.eps) throw usage_error("--upper-bound: is below --eps");
    }
    o.nonfinite = nonfinite_argument("--nonfinite", arguments.nonfinite);
    o.overflow = rule.overflow;
  }
  o.rounding = rule.rounding;
  if (o.rounding != samebits::rounding::nearest_even &&
      o.rounding != samebits::rounding::stochastic) {
    throw usage_error("--round: quantize takes nearest_even or stochastic, not " +
                      arguments.rule.rounding);
  }
  o.nan = rule.nan;
  o.random = rule.random;
  task.where = quantizing_backend_argument(arguments.backend);
  task.where.threads = 0;  // all; results do not depend on their number
  set_outputs(arguments, task);
  return task;
}

matrix_shape transposed_shape(const matrix_shape& s) { return {s.cols, s.rows}; }

/// The metadata of the file, for `dequantize`, `diff` and users.
std::vector<std::pair<std::string, std::string>> metadata_of(const quantization& task) {
  const samebits::quantize_options& o = task.options;
  std::vector<std::pair<std::string, std::string>> all = {
      {"samebits.block", block_text(o.tile)},
      {"samebits.scale_rule", std::string(samebits::name(o.scale))},
      {"samebits.rule",
       cat("eps ", shortest(static_cast<double>(o.eps)), ", upper bound ",
           shortest(static_cast<double>(o.upper_bound)), ", ", samebits::name(o.nonfinite), ", ",
           samebits::name(o.scale_overflow), ", ", samebits::name(o.rounding), ", ",
           samebits::name(o.overflow), ", ", samebits::name(o.nan), ", ",
           task.preset == nullptr ? "current" : samebits::name(task.preset->rules.source),
           " scales")}};
  if (task.preset != nullptr) all.emplace_back("samebits.recipe", std::string(task.preset->name));
  return all;
}

/// Codes and scales of one tile shape: of the source, or of its transpose if transposed.
struct output_pair {
  output_pair(const quantization& task, const matrix_shape& shape, const matrix_shape& tiles)
      : codes(task.to, shape), scales(task.scale_format, tiles) {}

  owned_matrix codes;
  owned_matrix scales;
};

/// Quantizes the tensor and writes OUT.
quantize_statistics run(const source_tensor& source, const quantization& task,
                        const tensor_target& target, output& out) {
  const source_matrix in = matrix_of(source.file, source.info, source.how);
  const matrix_shape shape = {in.view.rows, in.view.cols};
  const matrix_shape none = {};
  const float fresh = 1.0f;  // S in the first step of a delayed recipe
  samebits::quantize_options options = task.options;
  if (task.preset != nullptr && task.preset->rules.source == samebits::scale_source::delayed) {
    options.inverse_scales = samebits::view_of_codes(format_id::fp32, &fresh, 1, 1);
  }
  quantize_statistics statistics;
  const matrix_shape tiles = samebits::scales_shape(shape.rows, shape.cols, options.tile);
  output_pair row(task, shape, tiles);
  output_pair transposed_outputs(task, task.transposed ? transposed_shape(shape) : none,
                                 task.transposed ? transposed_shape(tiles) : none);
  samebits::quantize_outputs outputs = {.codes = row.codes.view(), .scales = row.scales.view()};
  if (task.transposed) {
    outputs.codes_transposed = transposed_outputs.codes.view();
    outputs.scales_transposed = transposed_outputs.scales.view();
  }
  outputs.statistics = &statistics;
  if (tiles.rows * tiles.cols == 0) options.inverse_scales = {};
  samebits::quantize(in.view, outputs, options, task.where);

  options.tile = {options.tile.cols, options.tile.rows};
  const matrix_shape column_tiles = samebits::scales_shape(shape.rows, shape.cols, options.tile);
  output_pair column(task, task.column ? shape : none, task.column ? column_tiles : none);
  if (task.column) {
    samebits::quantize(in.view, {.codes = column.codes.view(), .scales = column.scales.view()},
                       options, task.where);
  }

  std::vector<named_tensor> tensors;
  if (task.row) tensors.push_back(row.scales.tensor("scales"));
  if (task.column) tensors.push_back(column.scales.tensor("scales_col"));
  if (task.transposed) tensors.push_back(transposed_outputs.scales.tensor("scales_t"));
  if (task.row) tensors.push_back(row.codes.tensor("codes"));
  if (task.column) tensors.push_back(column.codes.tensor("codes_col"));
  if (task.transposed) tensors.push_back(transposed_outputs.codes.tensor("codes_t"));
  target.write(tensors, metadata_of(task), out);
  return statistics;
}

bool is_saturating(const quantization& task) {
  return task.options.overflow != samebits::overflow::ieee;
}

void write_shape(json_writer& json, std::string_view name, std::int64_t rows, std::int64_t cols) {
  const std::uint64_t both[] = {static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols)};
  json.key(name);
  json.value(std::span<const std::uint64_t>(both));
}

void write_json(const quantize_arguments& arguments, const source_tensor& source,
                const quantization& task, const quantize_statistics& s, const gate& conditions,
                output& out) {
  const samebits::quantize_options& o = task.options;
  const matrix_shape shape = matrix_of(source.info);
  const matrix_shape tiles = samebits::scales_shape(shape.rows, shape.cols, o.tile);
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("input", arguments.input);
  json.member("output", arguments.output);
  json.member("from", type_text(source.info, source.how));
  json.member("to", samebits::name(task.to));
  json.key("recipe");  // null: options instead of a recipe
  if (task.preset == nullptr) {
    json.value(std::nullopt);
  } else {
    json.value(task.preset->name);
  }
  write_shape(json, "block", o.tile.rows, o.tile.cols);
  json.member("scale_rule", samebits::name(o.scale));
  json.member("eps", static_cast<double>(o.eps));
  json.member("upper_bound", static_cast<double>(o.upper_bound));
  json.member("nonfinite", samebits::name(o.nonfinite));
  json.member("round", samebits::name(o.rounding));
  json.member("overflow", samebits::name(o.overflow));
  json.member("nan", samebits::name(o.nan));
  if (o.rounding == samebits::rounding::stochastic) {
    json.member("seed", o.random.seed);
    json.member("stream", o.random.stream);
    json.member("offset", o.random.offset);
    json.member("random_bits", o.random.bits);
  }
  json.member("row", task.row);
  json.member("column", task.column);
  json.member("transposed", task.transposed);
  json.member("scale_format", samebits::name(task.scale_format));
  json.key("backend");  // null: the call chooses the backend
  if (task.where.backend.empty()) {
    json.value(std::nullopt);
  } else {
    json.value(task.where.backend);
  }
  write_shape(json, "codes_shape", shape.rows, shape.cols);
  write_shape(json, "scales_shape", tiles.rows, tiles.cols);
  const sqnr ratio = sqnr_of(s, is_saturating(task));
  json.member("sqnr_db", ratio.db);
  json.member("sqnr_note", ratio.note());
  json.member("underflowed", s.underflowed);
  json.member("saturated", s.saturated);
  json.key("statistics");
  json.begin_object();
  json.member("count", s.elements);
  json.member("zeros", s.zeros);
  json.member("nan", s.nan);
  json.member("inf", s.inf);
  json.member("amax", static_cast<double>(s.amax));
  json.member("min_nonzero", static_cast<double>(s.min_nonzero));
  json.member("signal", s.signal);
  json.member("noise", s.noise);
  json.end_object();
  conditions.write_json(json);
  json.end_object();
  out.write(json.document());
}

std::string share(std::uint64_t part, std::uint64_t all) {
  if (part == 0 || all == 0) return cat(part);
  return cat(part, " (", general(100.0 * static_cast<double>(part) / static_cast<double>(all), 3),
             " %)");
}

void write_report(const tensor_target& target, const source_tensor& source,
                  const quantization& task, const quantize_statistics& s, output& out) {
  const samebits::quantize_options& o = task.options;
  const matrix_shape shape = matrix_of(source.info);
  const matrix_shape tiles = samebits::scales_shape(shape.rows, shape.cols, o.tile);
  const auto size = [](const char* name, const matrix_shape& m) {
    return cat(name, " [", m.rows, ", ", m.cols, "]");
  };
  std::string line = cat(target.shown(), ": ", size("codes", shape), " ", samebits::name(task.to),
                         ", ", size("scales", tiles), " ", samebits::name(task.scale_format));
  if (task.column) {
    line += cat(", ", size("codes_col", shape), ", ",
                size("scales_col",
                     samebits::scales_shape(shape.rows, shape.cols, {o.tile.cols, o.tile.rows})));
  }
  if (task.transposed) {
    line += cat(", ", size("codes_t", transposed_shape(shape)), ", ",
                size("scales_t", transposed_shape(tiles)));
  }
  out.write(line + "\n");
  if (task.preset != nullptr) {
    out.write(cat("  recipe ", task.preset->name, ", ", samebits::name(task.preset->verified),
                  " against the library\n"));
  }
  out.write(cat("  from ", type_text(source.info, source.how), ", block ", block_text(o.tile), ", ",
                samebits::name(o.scale), ", ", samebits::name(o.rounding), ", ",
                samebits::name(o.overflow), "\n"));
  const sqnr ratio = sqnr_of(s, is_saturating(task));
  const std::string why = ratio.reason.empty() ? "" : cat(" (", ratio.reason, ")");
  out.write(cat("  SQNR ", ratio.text(), why, "   underflowed ", share(s.underflowed, s.elements),
                "   saturated ", share(s.saturated, s.elements), "\n"));
  out.write(cat("  ", number_of(s.elements, "element"), "   zeros ", share(s.zeros, s.elements),
                "   NaN ", s.nan, "   Inf ", s.inf, "\n"));
  out.write(cat("  amax ", general(static_cast<double>(s.amax), 6), "   smallest non-zero ",
                general(static_cast<double>(s.min_nonzero), 6), "\n"));
}

}  // namespace

void run_quantize(const quantize_arguments& arguments, output& out) {
  const quantization task = quantization_of(arguments);
  gate conditions = quantize_gate(arguments.fail_if);
  const tensor_target target("OUT", arguments.output, container::safetensors);
  if (target.kind() != container::safetensors) {
    throw usage_error("OUT: codes and scales are several tensors, which only .safetensors holds");
  }
  const source_tensor source = open_source("IN", arguments.input, "--from", arguments.from);
  require_quantizable(source.format(), arguments.input);
  const quantize_statistics statistics = run(source, task, target, out);
  const std::string& stored = source.info.name.empty() ? arguments.input : source.info.name;
  const std::string name = samebits::tensor_file::escape(stored, 256);
  add_quantization(conditions, "", name, statistics, sqnr_of(statistics, is_saturating(task)));
  conditions.add_nonfinite(name, statistics.nan, statistics.inf, statistics.elements);
  if (arguments.view.json) {
    write_json(arguments, source, task, statistics, conditions, out);
  } else if (target.is_standard_output()) {
    output report(STDERR_FILENO);
    write_report(target, source, task, statistics, report);
    report.flush();
  } else {
    write_report(target, source, task, statistics, out);
  }
  out.flush();
  conditions.check();
}

}  // namespace fpinspect
