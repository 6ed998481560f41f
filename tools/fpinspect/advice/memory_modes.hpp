// Memory of optimizer_step()'s arrays: every way to keep weights, states and gradients.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fpinspect/cli/command.hpp"
#include "samebits/core/optimizer.hpp"

namespace fpinspect {

/// What `memory --weights` asks for. Names are those of the options.
struct memory_request {
  std::vector<std::string> weights;
  std::vector<std::string> states = {"fp32"};
  std::vector<std::string> gradients = {"bf16"};
  samebits::update_rule rule = samebits::update_rule::adamw;
  int block = 128;
  std::optional<double> parameters;  ///< number of weights, all of one tensor
};

/// Writes one row for each combination that the request names.
/// @throws usage_error  if a name is not known
void write_memory_modes(const memory_request& request, const session& s);

}  // namespace fpinspect
