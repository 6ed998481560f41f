// `fpinspect memory`: bytes a parameter of training schemes or of an optimizer's arrays, and totals.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/advice/memory_modes.hpp"
#include "fpinspect/advice/memory_schemes.hpp"
#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"

namespace fpinspect {
namespace {

memory_scheme scheme_argument(const std::string& text) {
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    refuse_value("SCHEME", text, "is a number; a number of parameters stands behind --parameters");
  }
  return row_argument("SCHEME", text, memory_schemes());
}

std::vector<memory_scheme> schemes_argument(const std::vector<std::string>& texts) {
  std::vector<memory_scheme> schemes;
  for (const std::string& text : texts) schemes.push_back(scheme_argument(text));
  if (schemes.empty()) schemes.assign(memory_schemes().begin(), memory_schemes().end());
  return schemes;
}

std::optional<transformer_shape> shape_argument(const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  std::vector<double> n;
  for (const std::string& text : texts) n.push_back(positive_argument("--activations", text));
  if (n.size() != 5) {
    throw usage_error(
        "--activations: LAYERS,HIDDEN,HEADS,SEQUENCE,BATCH is expected, five numbers");
  }
  return transformer_shape{n[0], n[1], n[2], n[3], n[4]};
}

int block_argument(std::string_view option, std::string_view text) {
  const std::uint64_t block = unsigned_argument(option, text, 128, 256);
  if (block != 128 && block != 256) throw usage_error(cat(option, ": 128 or 256 is expected"));
  return static_cast<int>(block);
}

/// Part of the bytes of the first scheme that a scheme saves.
double saved(const memory_scheme& scheme) {
  return 1 - bytes_of(scheme) / bytes_of(memory_schemes().front());
}

json_value part_json(const std::optional<stored_as>& part) {
  if (!part) return std::nullopt;
  return json_line({{"format", samebits::name(part->format)},
                    {"copies", part->copies},
                    {"scale_bits", part->scale_bits},
                    {"scale_elements", part->scale_elements},
                    {"bytes", bytes_of(*part)}});
}

json_object scheme_json(const memory_scheme& scheme, const std::optional<double>& parameters) {
  json_object parts;
  for (std::size_t i = 0; i < training_part_count; ++i) {
    parts.add(name(static_cast<training_part>(i)), part_json(scheme.parts[i]));
  }
  const double bytes = bytes_of(scheme);
  return {{"name", scheme.name},
          {"products", scheme.products},
          {"parts", parts},
          {"bytes_per_parameter", bytes},
          {"saved", saved(scheme)},
          {"total_bytes", parameters ? std::optional(bytes * *parameters) : std::nullopt},
          {"source", scheme.source},
          {"note", scheme.note}};
}

json_value activations_json(const std::optional<transformer_shape>& shape) {
  if (!shape) return std::nullopt;
  const activation_bytes bytes = activations_of(*shape);
  return json_line({{"all", bytes.all}, {"selective", bytes.selective}, {"full", bytes.full}});
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

std::string sources_text(const std::vector<memory_scheme>& schemes) {
  std::vector<std::string_view> sources;
  for (const memory_scheme& scheme : schemes) {
    if (std::find(sources.begin(), sources.end(), scheme.source) == sources.end()) {
      sources.push_back(scheme.source);
    }
  }
  std::string text;
  for (const std::string_view source : sources) {
    text += cat("\nsource: ", source, "\n");
    for (const memory_scheme& scheme : schemes) {
      if (scheme.source != source) continue;
      text += cat("  ", scheme.name, scheme.note.empty() ? "" : ": ", scheme.note, "\n");
    }
  }
  return text;
}

std::string activations_text(const transformer_shape& shape) {
  const activation_bytes bytes = activations_of(shape);
  return cat("\nactivations (", shortest(shape.layers), " layers, 16 bits), GB\n",
             "  all kept                      ", right(gigabytes(bytes.all), 8), "\n",
             "  attention scores recomputed   ", right(gigabytes(bytes.selective), 8), "\n",
             "  only inputs of layers kept    ", right(gigabytes(bytes.full), 8), "\n",
             "source: Reducing Activation Recomputation in Large Transformer Models "
             "(arXiv 2205.05198)\n");
}

class memory_command final : public command {
 public:
  void options(option_list& add) override {
    memory_request& r = request_;
    add.list("SCHEME", schemes_, schemes_argument, "Schemes (default: all)");
    add.value("--parameters", r.parameters, count_argument, "Number of parameters, such as 7e9");
    add.list("--activations", shape_, shape_argument,
             "LAYERS,HIDDEN,HEADS,SEQUENCE,BATCH of a transformer");
    add.list("--weights", r.weights,
             "In place of schemes: how optimizer_step() keeps weights, or all");
    add.list("--states", r.states, "With --weights: formats of states (default: fp32)");
    add.list("--gradients", r.gradients, "With --weights: formats of gradients (default: bf16)");
    add.value("--rule", r.rule, enumerator_argument<samebits::update_rule>,
              "With --weights: " + names_of<samebits::update_rule>(" or "), "adamw");
    add.value("--block", r.block, block_argument, "With --weights: elements for each scale", "128");
    add.exclude("--weights", {"SCHEME", "--activations"});
    add.need({"--states", "--gradients", "--rule", "--block"}, "--weights");
  }

  void run(const session& s) override {
    if (!request_.weights.empty()) return write_memory_modes(request_, s);
    const auto& parameters = request_.parameters;
    const auto scheme = [&](const memory_scheme& one) { return scheme_json(one, parameters); };
    if (s.json) {
      return s.write_json({{"parameters", parameters},
                           {"schemes", json_rows(schemes_, scheme)},
                           {"activations", activations_json(shape_)}});
    }
    s.out.write(schemes_text(s.term) + sources_text(schemes_));
    if (shape_) s.out.write(activations_text(*shape_));
  }

 private:
  [[nodiscard]] std::string schemes_text(const terminal& term) const {
    const auto& parameters = request_.parameters;
    const part_cells heads = {"weights", "master", "grad", "sum", "m", "v"};
    std::string text = term.painted(
        paint::heading, scheme_row("scheme", heads, "bytes", "saved", parameters ? "GB" : ""));
    for (const memory_scheme& scheme : schemes_) {
      part_cells parts;
      std::transform(scheme.parts.begin(), scheme.parts.end(), parts.begin(), part_text);
      text += scheme_row(scheme.name, parts, general(bytes_of(scheme), 5),
                         cat(fixed(100 * saved(scheme), 0), " %"),
                         parameters ? gigabytes(bytes_of(scheme) * *parameters) : "");
    }
    text += cat("\nbytes: of a parameter   saved: compared with ", memory_schemes().front().name,
                "\nsum: accumulated gradients   m, v: of Adam   *: with scales\n");
    if (!parameters) return text;
    return cat(text, "GB: 10^9 bytes for ", shortest(*parameters), " parameters\n");
  }

  std::vector<memory_scheme> schemes_;
  std::optional<transformer_shape> shape_;
  memory_request request_;
};

const registered<memory_command> memory_here(
    "memory", "Show the bytes a parameter of training schemes and optimizers", 200);

}  // namespace
}  // namespace fpinspect
