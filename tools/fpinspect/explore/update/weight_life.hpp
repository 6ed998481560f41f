// A weight under an optimizer: how it is kept, and what becomes of it.
#pragma once

#include "fpinspect/common.hpp"
#include "samebits/core/optimizer.hpp"

namespace fpinspect {

// --- How an optimizer keeps weights: the combinations of optimizer_step(), by name ---------------

struct weight_mode {
  std::string_view name;
  stored_format weights;  ///< what the model reads
  stored_format master = stored_format::none;
  low_part low = low_part::none;
};

/// The modes with these names; all modes if there are no names, or "all".
/// @throws usage_error  for another name; the message begins with `option`
std::vector<weight_mode> weight_modes_argument(std::string_view option,
                                               const std::vector<std::string>& names);

/// Bytes of an element, its part of a block's scale included; 0 for none.
double bytes_of(stored_format stored, int block);
/// Bytes of a weight with master weight and low part.
double bytes_of(const weight_mode& mode, int block);

// --- What an optimizer makes of a weight that is kept in different ways --------------------------

/// Weights of the tensor that begin alike and receive the same gradient. They differ only where
/// rounding is stochastic.
inline constexpr std::size_t equal_weights = 64;
/// Elements for each scale, in formats with scales.
inline constexpr int scale_block = 128;

/// The tensor is one block of `equal_weights` weights and one more, which receives the gradient 0.
struct update_plan {
  optimizer_settings settings;
  std::vector<weight_mode> modes;
  float start = 1;
  float block_amax = 3;          ///< the last weight: gives the block a scale as in a real tensor
  std::vector<float> gradients;  ///< of steps 1, 2, ...; after the last the first again
  std::vector<std::uint64_t> shown;  ///< 0 (before the first step), then ascending to the last step
  std::uint64_t seed = 0;            ///< of stochastic rounding

  [[nodiscard]] float gradient(std::uint64_t step) const {
    return gradients[static_cast<std::size_t>((step - 1) % gradients.size())];
  }
};

/// A weight in one mode.
struct weight_life {
  std::vector<double> read;       ///< after the shown steps: what the model reads
  std::uint64_t last_change = 0;  ///< the last step that changed what the model reads; 0: none
  double kept = 0;                ///< at the end: what the optimizer computes with
  std::vector<double> equal;      ///< at the end: what the model reads of all equal weights
};

/// The lives of the first weight, in the order of the modes, by optimizer_step().
/// @throws samebits::invalid_argument  if optimizer_step() refuses the settings
std::vector<weight_life> lives_of(const update_plan& plan);

/// The weight after the shown steps by the same formulas in binary64, which are rounded to no other
/// format.
std::vector<double> exact_life(const update_plan& plan);

}  // namespace fpinspect
