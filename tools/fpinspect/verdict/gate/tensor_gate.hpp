// --fail-if of `tensor`: conditions on tensors, on formats, and on the verdict.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fpinspect/verdict/collect.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "fpinspect/verdict/verdict.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

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

}  // namespace fpinspect
