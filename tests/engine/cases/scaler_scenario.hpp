// A scenario of a loss scaler: the steps that one takes, on gradients of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/core/fields.hpp"
#include "engine/core/layout.hpp"
#include "engine/core/strided_buffer.hpp"
#include "engine/core/target.hpp"
#include "engine/inputs/list_codes.hpp"
#include "samebits/core/step_report.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::support {

/// A gradient. Of several ranks shard s is elements [borders[s], borders[s + 1]), and lies on rank
/// (s + turn) % ranks.
struct scenario_tensor {
  format_id format = format_id::fp16;
  array_layout layout = {};
  std::vector<std::int64_t> borders = {};
  int turn = 0;

  /// The shard of a rank.
  [[nodiscard]] std::int64_t begin(int rank) const { return borders[shard(rank)]; }
  [[nodiscard]] std::int64_t end(int rank) const { return borders[shard(rank) + 1]; }

 private:
  [[nodiscard]] std::size_t shard(int rank) const {
    const int ranks = static_cast<int>(borders.size()) - 1;
    return static_cast<std::size_t>((rank + ranks - turn % ranks) % ranks);
  }
};

struct scaler_scenario {
  scaling_settings settings = native_scaling{};
  double max_norm = 1;
  std::vector<scenario_tensor> tensors = {};
  int ranks = 1;
  /// Each rank has whole tensors without shards. They are alike if max_norm is finite, since ranks
  /// that clip by other norms stop.
  bool apart = false;
  std::vector<list_content> steps = {};  ///< what the gradients of each step are
  int threads = 1;
  std::uint64_t content = 0;
};

void describe(scaler_scenario& c, case_fields& fields);

/// Gradients of a kind. Of any bits one element alone: every step would be skipped.
strided_buffer random_gradients(format_id format, const array_layout& layout, list_content kind,
                                std::uint64_t seed);

/// Losses of each step.
inline constexpr std::int64_t scenario_losses = 3;

// Where things lie on the site of a scenario: the gradients, then the losses [steps,
// scenario_losses], then the gradients of each step.
inline tensor_list gradients_of(const scaler_scenario& c, const call_site& site) {
  return tensor_list(std::span(site.views).first(c.tensors.size()));
}
inline const float* losses_of(const scaler_scenario& c, const call_site& site, std::size_t step) {
  return site.pointer<const float>(c.tensors.size()) +
         step * static_cast<std::size_t>(scenario_losses);
}
/// Sets the gradients to those of a step.
void draw_gradients(const scaler_scenario& c, const call_site& site, std::size_t step);

// Over ranks: the shards of rank 0, then those of rank 1, ..., which every step has; then the losses
// [steps * ranks, scenario_losses].
tensor_list shards_of(const scaler_scenario& c, const call_site& site, int rank);
inline const float* losses_of_rank(const scaler_scenario& c, const call_site& site,
                                   std::size_t step, int rank) {
  const auto ranks = static_cast<std::size_t>(c.ranks);
  return site.pointer<const float>(ranks * c.tensors.size()) +
         (step * ranks + static_cast<std::size_t>(rank)) *
             static_cast<std::size_t>(scenario_losses);
}
std::vector<std::uint64_t> first_elements(const scaler_scenario& c, int rank);

/// Adds what a step reported.
void add_report(returned_values& all, const step_report& r);
/// Adds the decision and the scale in force after the scenario.
void add_outcome(returned_values& all, const step_report& last, double scale);

}  // namespace samebits::support
