// Memory of optimizer_step()'s arrays: implementation.
#include "fpinspect/advice/memory_modes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/update/weight_modes.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {
namespace {

using samebits::stored_format;
using samebits::update_rule;

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

/// An optimizer's arrays.
struct memory_mode {
  weight_mode weights;
  named_format gradient;
  named_format states;
  int state_count;
  int block;

  [[nodiscard]] std::vector<stored_format> arrays() const {
    std::vector<stored_format> all = {weights.weights, weights.master, gradient.stored};
    all.insert(all.end(), static_cast<std::size_t>(state_count), states.stored);
    return all;
  }
  [[nodiscard]] double low_bytes() const { return weights.low == samebits::low_part::none ? 0 : 2; }
  [[nodiscard]] double bytes() const {
    double sum = low_bytes();
    for (const stored_format stored : arrays()) sum += bytes_of(stored, block);
    return sum;
  }
  /// Bytes of one tensor. Its last block may be shorter, and has a scale too.
  [[nodiscard]] double total(double parameters) const {
    double sum = low_bytes() * parameters;
    for (const stored_format stored : arrays()) {
      sum += samebits::code_bytes(stored) * parameters + sizeof(float) * scales(stored, parameters);
    }
    return sum;
  }

 private:
  [[nodiscard]] double scales(stored_format stored, double parameters) const {
    if (samebits::has_block_scales(stored)) return std::ceil(parameters / block);
    return stored == stored_format::e4m3_tensor || stored == stored_format::e5m2_tensor ? 1 : 0;
  }
};

/// Every combination of the arguments: weights vary slowest, gradients fastest.
std::vector<memory_mode> modes_of(const memory_arguments& arguments) {
  const auto weights = weight_modes_argument("--weights", arguments.weights);
  const auto rule = enumerator_argument<update_rule>("--rule", arguments.rule);
  const int states_of_rule = samebits::state_count({.rule = rule, .momentum = 0.9});
  const auto block = static_cast<int>(unsigned_argument("--block", arguments.block, 128, 256));
  if (block != 128 && block != 256) throw usage_error("--block: 128 or 256 is expected");
  std::vector<memory_mode> modes;
  for (const weight_mode& mode : weights) {
    for (const std::string& states : arguments.states) {
      const auto& state = row_argument<named_format>("--states", states, state_formats);
      if (state.stored == stored_format::none && rule != update_rule::sgd) {
        throw usage_error(cat("--states: none is only for --rule sgd; ", name(rule), " keeps ",
                              number_of(static_cast<std::uint64_t>(states_of_rule), "state")));
      }
      if (states_of_rule == 2 && (state.stored == stored_format::fp16_nearest ||
                                  state.stored == stored_format::fp16_stochastic)) {
        throw usage_error(cat("--states: ", state.name, " has no numbers between 0 and 2^-24, so ",
                              name(rule),
                              " would divide steps of small second moments by epsilon alone; use "
                              "fp16_scaled or bf16"));
      }
      for (const std::string& gradients : arguments.gradients) {
        const auto& gradient =
            row_argument<named_format>("--gradients", gradients, gradient_formats);
        const int count = state.stored == stored_format::none ? 0 : states_of_rule;
        modes.push_back({mode, gradient, state, count, block});
      }
    }
  }
  return modes;
}

void write_json(const std::vector<memory_mode>& modes, const std::optional<double>& parameters,
                output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("parameters", parameters);
  json.key("modes");
  json.begin_array();
  for (const memory_mode& mode : modes) {
    const int block = mode.block;
    json.begin_object(json_writer::layout::one_line);
    json.member("name", mode.weights.name);
    json.member("gradients", mode.gradient.name);
    json.member("states", mode.states.name);
    json.member("weight_bytes", bytes_of(mode.weights.weights, block));
    json.member("master_bytes", bytes_of(mode.weights.master, block));
    json.member("low_bytes", mode.low_bytes());
    json.member("gradient_bytes", bytes_of(mode.gradient.stored, block));
    json.member("state_bytes", mode.state_count * bytes_of(mode.states.stored, block));
    json.member("bytes_per_parameter", mode.bytes());
    json.member("total_bytes", parameters ? std::optional(mode.total(*parameters)) : std::nullopt);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

std::string format_text(stored_format stored) {
  if (stored == stored_format::none) return "-";
  return cat(samebits::name(codes_of(stored)), samebits::has_block_scales(stored) ? "*" : "");
}

std::string row_text(std::string_view mode, const std::string& weights, const std::string& master,
                     const std::string& low, std::string_view gradient, const std::string& states,
                     const std::string& bytes, const std::string& total) {
  return cat(left(mode, 17), left(weights, 9), left(master, 8), left(low, 6), left(gradient, 6),
             left(states, 15), right(bytes, 8), total.empty() ? "" : cat(" ", right(total, 8)),
             "\n");
}

std::string states_text(const named_format& states) {
  return cat(states.name, samebits::has_block_scales(states.stored) ? "*" : "");
}

std::string low_text(samebits::low_part low) {
  if (low == samebits::low_part::none) return "-";
  return low == samebits::low_part::split ? "int16" : "bf16";
}

void write_text(const std::vector<memory_mode>& modes, const std::optional<double>& parameters,
                const terminal& term, output& out) {
  out.write(term.painted(paint::heading, row_text("mode", "weights", "master", "low", "grad",
                                                  "states", "bytes", parameters ? "GB" : "")));
  for (const memory_mode& mode : modes) {
    out.write(row_text(mode.weights.name, format_text(mode.weights.weights),
                       format_text(mode.weights.master), low_text(mode.weights.low),
                       mode.gradient.name, states_text(mode.states), general(mode.bytes(), 7),
                       parameters ? general(mode.total(*parameters) / 1e9, 6) : ""));
  }
  const memory_mode& first = modes.front();
  int most_states = 0;  // 0 of SGD without momentum; else the same in all rows
  for (const memory_mode& mode : modes) most_states = std::max(most_states, mode.state_count);
  out.write(
      cat("\nbytes: of a parameter, its part of the scales included   states: ",
          most_states == 0 ? "none" : number_of(static_cast<std::uint64_t>(most_states), "array"),
          "\n*: with an fp32 scale for ", first.block, " elements\n"));
  if (parameters) {
    out.write(cat("GB: 10^9 bytes for ", shortest(*parameters), " parameters in one tensor\n"));
  }
}

}  // namespace

void write_memory_modes(const memory_arguments& arguments, const std::optional<double>& parameters,
                        const terminal& term, output& out) {
  const std::vector<memory_mode> modes = modes_of(arguments);
  if (arguments.view.json) return write_json(modes, parameters, out);
  write_text(modes, parameters, term, out);
}

}  // namespace fpinspect
