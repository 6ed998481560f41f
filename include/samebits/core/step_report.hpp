// Step reports of a device_loss_scaler: plain data in any memory.
#pragma once

#include <cstdint>

#include "samebits/core/loss_scaling.hpp"

namespace samebits {

/// Clipping by the global norm.
struct norm_clipping {
  double squares = 0;   ///< sum of the squares of the scaled gradients (contract §6)
  double max_norm = 0;  ///< of the unscaled gradients; >= 0. Inf: only report the norm
};

/// Report of one decided step.
struct step_report {
  std::uint64_t step = 0;           ///< steps decided before this one
  std::uint64_t applied_steps = 0;  ///< steps applied so far, this step included
  double scale = 1;                 ///< scale during the step, before its update
  double norm = 0;                  ///< of the unscaled gradients; NaN if not computed
  std::int64_t first_bad = -1;      ///< position of the first bad tensor; -1: none
  std::int64_t bad_rank = -1;       ///< the rank to blame; -1: none
  /// Factor of the gradients in the optimizer: 1 / scale, times the clip factor; 0 if the step is
  /// skipped.
  float grad_mul = 0;
  std::uint32_t amax_bits = amax_unknown;  ///< of the scaled gradients, as binary32 bits
  std::int32_t exponent = 0;               ///< floor(log2(scale)): e of policy native
  bool applied = false;
  bool stop = false;  ///< the policy ends the run
  step_cause cause = step_cause::none;
  scale_change change = scale_change::kept;
};

}  // namespace samebits
