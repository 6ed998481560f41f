// --fail-if of `quantize` and of `tensor --recipes`: conditions on what a quantization loses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/quantize/sqnr.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "samebits/quantize.hpp"

namespace fpinspect {

/// The conditions of `quantize`: sqnr, underflow, saturated, nan and inf.
/// @throws usage_error  for any other condition
gate quantize_gate(const std::vector<std::string>& texts);

/// The conditions of `tensor --recipes`: sqnr, underflow and saturated, each also of one recipe
/// ('MXFP8_TE.sqnr<30dB'); nan and inf.
/// @throws usage_error  for any other condition, or an unknown recipe
gate recipes_gate(const std::vector<std::string>& texts);

/// Notes the figures of one quantization.
///
/// @param recipe  its name, or empty
/// @param shown  the tensor's name in text
void add_quantization(gate& conditions, std::string_view recipe, const std::string& shown,
                      const samebits::quantize_statistics& s, const sqnr& ratio);

}  // namespace fpinspect
