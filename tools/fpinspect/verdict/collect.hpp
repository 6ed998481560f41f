// Reads tensors and collects what the verdict needs of them; the options that it depends on.
#pragma once

#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {

/// The evidence for the verdict, in the order of the tensors. Reads each tensor several times: once for
/// all formats, once for each recipe. Reads gradients once more at the loss scale of all gradients, and at scales at which counts cannot tell the SQNR.
///
/// @param formats  formats besides those of the verdict
/// @param names  of the tensors in text
std::vector<tensor_evidence> collect(std::span<const shown_tensor> tensors,
                                     std::span<const std::string> names,
                                     std::span<const role_rule> rules,
                                     std::span<const format_id> formats, const need& wanted,
                                     const executor& where);

inline need& add_need(option_list& add) {
  return add.list("--need", need_argument,
                  "What a choice must keep: 30dB, 'underflow<1%' (both are the default)");
}

inline std::vector<role_rule>& add_roles(option_list& add) {
  return add.repeated("--role", role_rules,
                      "PATTERN=ROLE: weights, activations, gradients, adam_m, adam_v or other");
}

}  // namespace fpinspect
