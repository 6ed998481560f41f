// Memory of optimizer_step()'s arrays: implementation.
#include "fpinspect/advice/memory_modes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/update/weight_life.hpp"
#include "fpinspect/output/table.hpp"
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

/// Every combination of the request: weights vary slowest, gradients fastest.
std::vector<memory_mode> modes_of(const memory_request& request) {
  const auto weights = weight_modes_argument("--weights", request.weights);
  const update_rule rule = request.rule;
  const int states_of_rule = samebits::state_count({.rule = rule, .momentum = 0.9});
  std::vector<memory_mode> modes;
  for (const weight_mode& mode : weights) {
    for (const std::string& states : request.states) {
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
      for (const std::string& gradients : request.gradients) {
        const auto& gradient =
            row_argument<named_format>("--gradients", gradients, gradient_formats);
        const int count = state.stored == stored_format::none ? 0 : states_of_rule;
        modes.push_back({mode, gradient, state, count, request.block});
      }
    }
  }
  return modes;
}

std::string format_text(stored_format stored) {
  if (stored == stored_format::none) return "-";
  return cat(samebits::name(codes_of(stored)), samebits::has_block_scales(stored) ? "*" : "");
}

std::string low_text(samebits::low_part low) {
  if (low == samebits::low_part::none) return "-";
  return low == samebits::low_part::split ? "int16" : "bf16";
}

/// A row of the table.
struct memory_row {
  memory_mode mode;
  std::optional<double> parameters;

  [[nodiscard]] double bytes_of(stored_format stored) const {
    return fpinspect::bytes_of(stored, mode.block);
  }
  [[nodiscard]] std::optional<double> total() const {
    return parameters ? std::optional(mode.total(*parameters)) : std::nullopt;
  }
};

constexpr column<memory_row> mode_columns[] = {
    {"name", "mode", 17, [](auto& r) { return r.mode.weights.name; }},
    {"gradients", "", 0, [](auto& r) { return r.mode.gradient.name; }},
    {"states", "", 0, [](auto& r) { return r.mode.states.name; }},
    {"weight_bytes", "weights", 9, [](auto& r) { return r.bytes_of(r.mode.weights.weights); },
     [](auto& r) { return format_text(r.mode.weights.weights); }},
    {"master_bytes", "master", 8, [](auto& r) { return r.bytes_of(r.mode.weights.master); },
     [](auto& r) { return format_text(r.mode.weights.master); }},
    {"low_bytes", "low", 6, [](auto& r) { return r.mode.low_bytes(); },
     [](auto& r) { return low_text(r.mode.weights.low); }},
    {"gradient_bytes", "grad", 6, [](auto& r) { return r.bytes_of(r.mode.gradient.stored); },
     [](auto& r) { return r.mode.gradient.name; }},
    {"state_bytes", "states", 15,
     [](auto& r) { return r.mode.state_count * r.bytes_of(r.mode.states.stored); },
     [](auto& r) {
       return cat(r.mode.states.name, samebits::has_block_scales(r.mode.states.stored) ? "*" : "");
     }},
    {"bytes_per_parameter", "bytes", -8, [](auto& r) { return r.mode.bytes(); },
     [](auto& r) { return general(r.mode.bytes(), 7); }},
    {"total_bytes", "", 0, [](auto& r) { return r.total(); }},
};
constexpr column<memory_row> total_columns[] = {
    {"", "GB", -9, nullptr, [](auto& r) { return general(*r.total() / 1e9, 6); }}};

}  // namespace

void write_memory_modes(const memory_request& request, const session& s) {
  std::vector<memory_row> rows;
  for (const memory_mode& mode : modes_of(request)) rows.push_back({mode, request.parameters});
  std::vector<column<memory_row>> columns(std::begin(mode_columns), std::end(mode_columns));
  if (s.json) {
    return s.write_json({{"parameters", request.parameters},
                         {"modes", table_json<memory_row>(columns, rows, true)}});
  }
  if (request.parameters)
    columns.insert(columns.end(), std::begin(total_columns), std::end(total_columns));
  int states = 0;  // 0 of SGD without momentum; else the same in all rows
  for (const memory_row& row : rows) states = std::max(states, row.mode.state_count);
  s.out.write(table_text<memory_row>(columns, rows, s.term));
  s.out.write(cat("\nbytes: of a parameter, its part of the scales included   states: ",
                  states == 0 ? "none" : number_of(static_cast<std::uint64_t>(states), "array"),
                  "\n*: with an fp32 scale for ", request.block, " elements\n"));
  if (request.parameters) {
    s.out.write(
        cat("GB: 10^9 bytes for ", shortest(*request.parameters), " parameters in one tensor\n"));
  }
}

}  // namespace fpinspect
