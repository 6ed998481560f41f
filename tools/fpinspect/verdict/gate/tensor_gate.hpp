// --fail-if of `tensor`, and of `quantize` and `tensor --recipes`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/quantize/sqnr.hpp"
#include "fpinspect/verdict/collect.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "fpinspect/verdict/verdict.hpp"
#include "samebits/core/format.hpp"
#include "samebits/quantize.hpp"

namespace fpinspect {

// --- --fail-if of `tensor`: conditions on tensors, on formats, and on the verdict -----------------

/// Conditions whose figures `tensor` has.
class tensor_gate {
 public:
  /// @param to  the formats of --to; empty if it is not given. A condition on a format that names
  ///   none is one on each of these.
  /// @throws usage_error  if a text is not a condition, or needs a format and has none
  tensor_gate(const std::vector<std::string>& texts, std::span<const samebits::format_id> to);

  /// The formats whose figures the conditions are about: for collect().
  [[nodiscard]] const std::vector<samebits::format_id>& formats() const { return formats_; }
  /// The conditions, with the tensors for which they hold.
  [[nodiscard]] gate checked(const collected& all, const verdict& v) const;

 private:
  void add(condition c, samebits::format_id format);

  std::vector<condition> conditions_;
  std::vector<samebits::format_id> formats_;
};

// --- --fail-if of `quantize` and of `tensor --recipes` --------------------------------------------

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
/// @param ratio  without a ratio every `sqnr<X` holds, unless the quantization is exact or there
///   are no elements
void add_quantization(gate& conditions, std::string_view recipe, const std::string& shown,
                      const samebits::quantize_statistics& s, const sqnr& ratio);

}  // namespace fpinspect
