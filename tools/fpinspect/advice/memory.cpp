// `fpinspect memory`: bytes a parameter of training schemes or of an optimizer's arrays, and totals.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fpinspect/advice/memory_modes.hpp"
#include "fpinspect/advice/memory_schemes.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/number_argument.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

struct memory_task {
  std::vector<memory_scheme> schemes;
  std::optional<double> parameters;
  std::optional<transformer_shape> shape;
};

double positive_argument(std::string_view option, std::string_view text) {
  const double number = number_argument(option, text);
  if (number > 0) return number;
  throw usage_error(cat(option, ": ", samebits::tensor_file::quote(text), " is not above 0"));
}

memory_scheme scheme_argument(const std::string& text) {
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    throw usage_error(cat("SCHEME: ", samebits::tensor_file::quote(text),
                          " is a number; a number of parameters stands behind --parameters"));
  }
  return row_argument("SCHEME", text, memory_schemes());
}

memory_task task_of(const memory_arguments& arguments) {
  memory_task task;
  for (const std::string& text : arguments.schemes) task.schemes.push_back(scheme_argument(text));
  if (task.schemes.empty()) {
    task.schemes.assign(memory_schemes().begin(), memory_schemes().end());
  }
  if (!arguments.parameters.empty()) {
    task.parameters = count_argument("--parameters", arguments.parameters);
    if (!(*task.parameters > 0)) {
      throw usage_error(cat("--parameters: ", samebits::tensor_file::quote(arguments.parameters),
                            " is not above 0"));
    }
  }
  if (!arguments.activations.empty()) {
    constexpr std::size_t dimensions = 5;
    std::vector<double> numbers;
    for (const std::string& text : arguments.activations) {
      numbers.push_back(positive_argument("--activations", text));
    }
    if (numbers.size() != dimensions) {
      throw usage_error(
          "--activations: LAYERS,HIDDEN,HEADS,SEQUENCE,BATCH is expected, five numbers");
    }
    task.shape = transformer_shape{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  }
  return task;
}

/// Part of the bytes of the first scheme that a scheme saves.
double saved(const memory_scheme& scheme) {
  return 1 - bytes_of(scheme) / bytes_of(memory_schemes().front());
}

void write_scheme_json(json_writer& json, const memory_scheme& scheme,
                       const std::optional<double>& parameters) {
  json.begin_object();
  json.member("name", scheme.name);
  json.member("products", scheme.products);
  json.key("parts");
  json.begin_object();
  for (std::size_t i = 0; i < training_part_count; ++i) {
    const auto& part = scheme.parts[i];
    json.key(name(static_cast<training_part>(i)));
    if (!part) {
      json.value(std::nullopt);
      continue;
    }
    json.begin_object(json_writer::layout::one_line);
    json.member("format", samebits::name(part->format));
    json.member("copies", part->copies);
    json.member("scale_bits", part->scale_bits);
    json.member("scale_elements", part->scale_elements);
    json.member("bytes", bytes_of(*part));
    json.end_object();
  }
  json.end_object();
  json.member("bytes_per_parameter", bytes_of(scheme));
  json.member("saved", saved(scheme));
  json.member("total_bytes",
              parameters ? std::optional(bytes_of(scheme) * *parameters) : std::nullopt);
  json.member("source", scheme.source);
  json.member("note", scheme.note);
  json.end_object();
}

void write_memory_json(const memory_task& task, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("parameters", task.parameters);
  json.key("schemes");
  json.begin_array();
  for (const memory_scheme& scheme : task.schemes) write_scheme_json(json, scheme, task.parameters);
  json.end_array();
  json.key("activations");
  if (task.shape) {
    const activation_bytes bytes = activations_of(*task.shape);
    json.begin_object(json_writer::layout::one_line);
    json.member("all", bytes.all);
    json.member("selective", bytes.selective);
    json.member("full", bytes.full);
    json.end_object();
  } else {
    json.value(std::nullopt);
  }
  json.end_object();
  out.write(json.document());
}

/// 10^9 bytes, with three digits or more.
std::string gigabytes(double bytes) {
  const double number = bytes / 1e9;
  return number < 1000 ? general(number, 3) : fixed(number, 0);
}

std::string part_text(const std::optional<stored_as>& part) {
  if (!part) return "-";
  return cat(samebits::name(part->format), part->scale_bits == 0 ? "" : "*");
}

using part_cells = std::array<std::string, training_part_count>;

std::string scheme_row(std::string_view scheme, const part_cells& parts, const std::string& bytes,
                       const std::string& less, const std::string& total) {
  constexpr std::array<std::size_t, training_part_count> widths = {8, 7, 6, 6, 6, 6};
  std::string line = left(scheme, 19);
  for (std::size_t i = 0; i < parts.size(); ++i) line += left(parts[i], widths[i]);
  return cat(line, right(bytes, 7), right(less, 6), total.empty() ? "" : cat(" ", right(total, 6)),
             "\n");
}

void write_schemes(const memory_task& task, const terminal& term, output& out) {
  const part_cells heads = {"weights", "master", "grad", "sum", "m", "v"};
  out.write(term.painted(
      paint::heading, scheme_row("scheme", heads, "bytes", "saved", task.parameters ? "GB" : "")));
  for (const memory_scheme& scheme : task.schemes) {
    part_cells parts;
    std::transform(scheme.parts.begin(), scheme.parts.end(), parts.begin(), part_text);
    out.write(scheme_row(scheme.name, parts, general(bytes_of(scheme), 5),
                         cat(fixed(100 * saved(scheme), 0), " %"),
                         task.parameters ? gigabytes(bytes_of(scheme) * *task.parameters) : ""));
  }
  out.write(cat("\nbytes: of a parameter   saved: compared with ", memory_schemes().front().name,
                "\nsum: accumulated gradients   m, v: of Adam   *: with scales\n"));
  if (task.parameters) {
    out.write(cat("GB: 10^9 bytes for ", shortest(*task.parameters), " parameters\n"));
  }
}

void write_sources(const memory_task& task, output& out) {
  std::vector<std::string_view> sources;
  for (const memory_scheme& scheme : task.schemes) {
    if (std::find(sources.begin(), sources.end(), scheme.source) == sources.end()) {
      sources.push_back(scheme.source);
    }
  }
  for (const std::string_view source : sources) {
    out.write(cat("\nsource: ", source, "\n"));
    for (const memory_scheme& scheme : task.schemes) {
      if (scheme.source != source) continue;
      out.write(cat("  ", scheme.name, scheme.note.empty() ? "" : ": ", scheme.note, "\n"));
    }
  }
}

void write_activations(const transformer_shape& shape, output& out) {
  const activation_bytes bytes = activations_of(shape);
  out.write(cat("\nactivations (", shortest(shape.layers), " layers, 16 bits), GB\n",
                "  all kept                      ", right(gigabytes(bytes.all), 8), "\n",
                "  attention scores recomputed   ", right(gigabytes(bytes.selective), 8), "\n",
                "  only inputs of layers kept    ", right(gigabytes(bytes.full), 8), "\n",
                "source: Reducing Activation Recomputation in Large Transformer Models "
                "(arXiv 2205.05198)\n"));
}

}  // namespace

void run_memory(const memory_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const memory_task task = task_of(arguments);
  if (!arguments.weights.empty()) {
    return write_memory_modes(arguments, task.parameters, term, out);
  }
  if (arguments.view.json) return write_memory_json(task, out);
  write_schemes(task, term, out);
  write_sources(task, out);
  if (task.shape) write_activations(*task.shape, out);
}

}  // namespace fpinspect
