// Reads tensors and collects what the verdict needs of them.
#pragma once

#include <span>
#include <vector>

#include "fpinspect/tensors/element_statistics.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/evidence.hpp"
#include "fpinspect/verdict/gate/condition.hpp"
#include "fpinspect/verdict/roles.hpp"
#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// The tensors' own statistics and, in the same order, the evidence for the verdict.
struct collected {
  std::vector<samebits::cast_statistics>
      stats;  ///< empty statistics for elements that are not numbers
  std::vector<tensor_evidence> evidence;
};

/// Reads each tensor several times: once for all formats, once for each recipe. Reads gradients once
/// more at the loss scale of all gradients, and at scales at which counts cannot tell the SQNR.
///
/// @param formats  formats besides those of the verdict
/// @param names  of the tensors in text
collected collect(std::span<const shown_tensor> tensors, std::span<const std::string> names,
                  std::span<const role_rule> rules, std::span<const samebits::format_id> formats,
                  const need& wanted, const samebits::executor& where);

}  // namespace fpinspect
