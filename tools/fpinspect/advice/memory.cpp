// `fpinspect memory`: bytes a parameter of training schemes or of an optimizer's arrays, and totals.

#include "fpinspect/advice/memory_schemes.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/explore/update/weight_life.hpp"

namespace fpinspect {
namespace {

memory_scheme scheme_argument(const std::string& text) {
  refuse_value_if(!text.empty() && text.front() >= '0' && text.front() <= '9', "SCHEME", text,
                  "is a number; a number of parameters stands behind --parameters");
  return row_argument("SCHEME", text, memory_schemes);
}

std::vector<memory_scheme> schemes_argument(const std::vector<std::string>& texts) {
  std::vector<memory_scheme> schemes;
  for (const std::string& text : texts) schemes.push_back(scheme_argument(text));
  if (schemes.empty()) schemes.assign(memory_schemes.begin(), memory_schemes.end());
  return schemes;
}

std::optional<transformer_shape> shape_argument(const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  std::vector<double> n;
  for (const std::string& text : texts) n.push_back(positive_argument("--activations", text));
  refuse_if(n.size() != 5,
            "--activations: LAYERS,HIDDEN,HEADS,SEQUENCE,BATCH is expected, five numbers");
  return transformer_shape{n[0], n[1], n[2], n[3], n[4]};
}

int block_argument(std::string_view option, std::string_view text) {
  const std::uint64_t block = unsigned_argument(option, text, 128, 256);
  if (block != 128 && block != 256) throw usage_error(option, ": 128 or 256 is expected");
  return static_cast<int>(block);
}

/// 10^9 bytes, with three digits or more.
std::string gigabytes(double bytes) {
  const double number = bytes / 1e9;
  return number < 1000 ? general(number, 3) : fixed(number, 0);
}

/// A row of the table.
struct scheme_row {
  memory_scheme is;
  std::optional<double> parameters;
  double bytes = bytes_of(is);

  /// Part of the bytes of the first scheme that this one saves.
  [[nodiscard]] double saved() const { return 1 - bytes / bytes_of(memory_schemes.front()); }
  [[nodiscard]] std::optional<double> total() const {
    return parameters ? std::optional(bytes * *parameters) : std::nullopt;
  }
};

json_value part_json(const std::optional<stored_as>& part) {
  if (!part) return std::nullopt;
  return json_line({{"format", name(part->format)},
                    {"copies", part->copies},
                    {"scale_bits", part->scale_bits},
                    {"scale_elements", part->scale_elements},
                    {"bytes", bytes_of(*part)}});
}

json_object parts_json(const memory_scheme& scheme) {
  json_object parts;
  for (std::size_t i = 0; i < training_part_count; ++i) {
    parts.add(name(static_cast<training_part>(i)), part_json(scheme.parts[i]));
  }
  return parts;
}

std::string part_text(const scheme_row& row, training_part which) {
  const auto& part = row.is.parts[static_cast<std::size_t>(which)];
  if (!part) return "-";
  return cat(part->format, part->scale_bits == 0 ? "" : "*");
}

template <training_part Part>
constexpr column<scheme_row> part_column(std::string_view heading, int width) {
  return {"", heading, width, nullptr, [](auto& r) { return part_text(r, Part); }};
}

constexpr column<scheme_row> scheme_columns[] = {
    {"name", "scheme", 19, [](auto& r) { return r.is.name; }},
    {"products", "", 0, [](auto& r) { return r.is.products; }},
    {"parts", "", 0, [](auto& r) { return parts_json(r.is); }},
    part_column<training_part::weights>("weights", 8),
    part_column<training_part::master>("master", 7),
    part_column<training_part::gradients>("grad", 6),
    part_column<training_part::accumulated>("sum", 6),
    part_column<training_part::moment_1>("m", 6),
    part_column<training_part::moment_2>("v", 6),
    {"bytes_per_parameter", "bytes", -7, [](auto& r) { return r.bytes; },
     [](auto& r) { return general(r.bytes, 5); }},
    {"saved", "saved", -6, [](auto& r) { return r.saved(); },
     [](auto& r) { return cat(fixed(100 * r.saved(), 0), " %"); }},
    {"total_bytes", "", 0, [](auto& r) { return r.total(); }},
    {"source", "", 0, [](auto& r) { return r.is.source; }},
    {"note", "", 0, [](auto& r) { return r.is.note; }},
};
constexpr column<scheme_row> scheme_total = {"", "GB", -7, nullptr,
                                             [](auto& r) { return gigabytes(*r.total()); }};

json_value activations_json(const std::optional<transformer_shape>& shape) {
  if (!shape) return std::nullopt;
  const activation_bytes bytes = activations_of(*shape);
  return json_line({{"all", bytes.all}, {"selective", bytes.selective}, {"full", bytes.full}});
}

std::string sources_text(const std::vector<memory_scheme>& schemes) {
  std::vector<std::string_view> sources;
  for (const memory_scheme& scheme : schemes) add_once(sources, scheme.source);
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

// --- An optimizer's arrays -----------------------------------------------------------------------

struct named_format {
  std::string_view name;
  stored_format stored;
};

// The names are those of samebits.torch.optim.
constexpr named_format state_formats[] = {
    {"fp32", stored_format::fp32},
    {"bf16", stored_format::bf16_nearest},
    {"bf16_stochastic", stored_format::bf16_stochastic},
    {"fp16", stored_format::fp16_nearest},
    {"fp16_stochastic", stored_format::fp16_stochastic},
    {"fp16_scaled", stored_format::fp16_scaled},
    {"e4m3", stored_format::e4m3_scaled},
    {"e5m2", stored_format::e5m2_scaled},
    {"dynamic8",
     stored_format::dynamic8_signed},  // the second state in dynamic8_unsigned: as large
    {"none", stored_format::none},
};
constexpr named_format gradient_formats[] = {
    {"fp32", stored_format::fp32},         {"bf16", stored_format::bf16_nearest},
    {"fp16", stored_format::fp16_nearest}, {"e4m3", stored_format::e4m3_tensor},
    {"e5m2", stored_format::e5m2_tensor},
};

/// An optimizer's arrays: a row of the table.
struct memory_mode {
  weight_mode weights;
  named_format gradient;
  named_format states;
  int state_count;
  int block;
  std::optional<double> parameters;  ///< number of weights, all of one tensor

  [[nodiscard]] std::vector<stored_format> arrays() const {
    std::vector<stored_format> all = {weights.weights, weights.master, gradient.stored};
    all.insert(all.end(), static_cast<std::size_t>(state_count), states.stored);
    return all;
  }
  [[nodiscard]] double low_bytes() const { return weights.low == low_part::none ? 0 : 2; }
  [[nodiscard]] double bytes() const {
    double sum = low_bytes();
    for (const stored_format stored : arrays()) sum += bytes_of(stored);
    return sum;
  }
  [[nodiscard]] double bytes_of(stored_format stored) const {
    return fpinspect::bytes_of(stored, block);
  }
  /// Bytes of the tensor. Its last block may be shorter, and has a scale too.
  [[nodiscard]] std::optional<double> total() const {
    if (!parameters) return std::nullopt;
    double sum = low_bytes() * *parameters;
    for (const stored_format stored : arrays()) {
      sum += code_bytes(stored) * *parameters + sizeof(float) * scales(stored);
    }
    return sum;
  }

 private:
  [[nodiscard]] double scales(stored_format stored) const {
    if (has_block_scales(stored)) return std::ceil(*parameters / block);
    return stored == stored_format::e4m3_tensor || stored == stored_format::e5m2_tensor ? 1 : 0;
  }
};

/// What --weights asks for. Names are those of the options.
struct memory_request {
  std::vector<std::string> weights, states, gradients;
  update_rule rule;
  int block;
  std::optional<double> parameters;  ///< number of weights, all of one tensor
};

/// Every combination of the request: weights vary slowest, gradients fastest.
std::vector<memory_mode> modes_of(const memory_request& request) {
  const auto weights = weight_modes_argument("--weights", request.weights);
  const update_rule rule = request.rule;
  const int states_of_rule = state_count({.rule = rule, .momentum = 0.9});
  std::vector<memory_mode> modes;
  for (const weight_mode& mode : weights) {
    for (const std::string& states : request.states) {
      const auto& state = row_argument<named_format>("--states", states, state_formats);
      refuse_if(state.stored == stored_format::none && rule != update_rule::sgd,
                "--states: none is only for --rule sgd; ", rule, " keeps ",
                number_of(static_cast<std::uint64_t>(states_of_rule), "state"));
      refuse_if(states_of_rule == 2 && (state.stored == stored_format::fp16_nearest ||
                                        state.stored == stored_format::fp16_stochastic),
                "--states: ", state.name, " has no numbers between 0 and 2^-24, so ", rule,
                " would divide steps of small second moments by epsilon alone; use "
                "fp16_scaled or bf16");
      for (const std::string& gradients : request.gradients) {
        const auto& gradient =
            row_argument<named_format>("--gradients", gradients, gradient_formats);
        const int count = state.stored == stored_format::none ? 0 : states_of_rule;
        modes.push_back({mode, gradient, state, count, request.block, request.parameters});
      }
    }
  }
  return modes;
}

std::string format_text(stored_format stored) {
  if (stored == stored_format::none) return "-";
  const std::string_view text = name(stored);  // bf16_nearest
  return cat(text.substr(0, text.find('_')), has_block_scales(stored) ? "*" : "");
}

std::string low_text(low_part low) {
  if (low == low_part::none) return "-";
  return low == low_part::split ? "int16" : "bf16";
}

constexpr column<memory_mode> mode_columns[] = {
    {"name", "mode", 17, [](auto& r) { return r.weights.name; }},
    {"gradients", "", 0, [](auto& r) { return r.gradient.name; }},
    {"states", "", 0, [](auto& r) { return r.states.name; }},
    {"weight_bytes", "weights", 9, [](auto& r) { return r.bytes_of(r.weights.weights); },
     [](auto& r) { return format_text(r.weights.weights); }},
    {"master_bytes", "master", 8, [](auto& r) { return r.bytes_of(r.weights.master); },
     [](auto& r) { return format_text(r.weights.master); }},
    {"low_bytes", "low", 6, [](auto& r) { return r.low_bytes(); },
     [](auto& r) { return low_text(r.weights.low); }},
    {"gradient_bytes", "grad", 6, [](auto& r) { return r.bytes_of(r.gradient.stored); },
     [](auto& r) { return r.gradient.name; }},
    {"state_bytes", "states", 15,
     [](auto& r) { return r.state_count * r.bytes_of(r.states.stored); },
     [](auto& r) { return cat(r.states.name, has_block_scales(r.states.stored) ? "*" : ""); }},
    {"bytes_per_parameter", "bytes", -8, [](auto& r) { return r.bytes(); },
     [](auto& r) { return general(r.bytes(), 7); }},
    {"total_bytes", "", 0, [](auto& r) { return r.total(); }},
};
constexpr column<memory_mode> mode_total = {"", "GB", -9, nullptr,
                                            [](auto& r) { return general(*r.total() / 1e9, 6); }};

/// Writes one row for each combination that the request names.
void write_memory_modes(const memory_request& request, const session& s) {
  const std::vector<memory_mode> rows = modes_of(request);
  std::vector<column<memory_mode>> columns(std::begin(mode_columns), std::end(mode_columns));
  if (request.parameters) columns.push_back(mode_total);
  int states = 0;  // 0 of SGD without momentum; else the same in all rows
  for (const memory_mode& row : rows) states = std::max(states, row.state_count);
  std::string text =
      cat(table_text(columns, rows, s.term),
          "\nbytes: of a parameter, its part of the scales included   states: ",
          states == 0 ? "none" : number_of(static_cast<std::uint64_t>(states), "array"),
          "\n*: with an fp32 scale for ", request.block, " elements\n");
  if (request.parameters) {
    text +=
        cat("GB: 10^9 bytes for ", shortest(*request.parameters), " parameters in one tensor\n");
  }
  s.write({{"parameters", request.parameters}, {"modes", table_json(columns, rows, true)}}, text);
}

run_function memory_command(option_list& add) {
  auto& schemes = add.list("SCHEME", schemes_argument, "Schemes (default: all)");
  auto& parameters =
      add.optional_value("--parameters", count_argument, "Number of parameters, such as 7e9");
  auto& shape = add.list("--activations", shape_argument,
                         "LAYERS,HIDDEN,HEADS,SEQUENCE,BATCH of a transformer");
  auto& weights =
      add.list("--weights", "In place of schemes: how optimizer_step() keeps weights, or all");
  auto& states = add.list("--states", "With --weights: formats of states (default: fp32)");
  auto& gradients = add.list("--gradients", "With --weights: formats of gradients (default: bf16)");
  auto& rule = add_enumerator<update_rule>(add, "--rule", "adamw", "With --weights: ");
  auto& block =
      add.value("--block", block_argument, "With --weights: elements for each scale", "128");
  add.exclude("--weights", {"SCHEME", "--activations"});
  add.need({"--states", "--gradients", "--rule", "--block"}, "--weights");
  return [&](const session& s) {
    if (!weights.empty()) {
      if (states.empty()) states = {"fp32"};
      if (gradients.empty()) gradients = {"bf16"};
      return write_memory_modes({weights, states, gradients, rule, block, parameters}, s);
    }
    std::vector<scheme_row> rows;
    for (const memory_scheme& scheme : schemes) rows.push_back({scheme, parameters});
    std::vector<column<scheme_row>> columns(std::begin(scheme_columns), std::end(scheme_columns));
    if (parameters) columns.push_back(scheme_total);
    std::string text =
        cat(table_text(columns, rows, s.term), "\nbytes: of a parameter   saved: compared with ",
            memory_schemes.front().name,
            "\nsum: accumulated gradients   m, v: of Adam   *: with scales\n");
    if (parameters) text += cat("GB: 10^9 bytes for ", shortest(*parameters), " parameters\n");
    text += sources_text(schemes);
    if (shape) text += activations_text(*shape);
    s.write({{"parameters", parameters},
             {"schemes", table_json(columns, rows)},
             {"activations", activations_json(shape)}},
            text);
  };
}

const registered memory_here("memory",
                             "Show the bytes a parameter of training schemes and optimizers", 200,
                             memory_command);

}  // namespace
}  // namespace fpinspect
