// A check of a conversion before its failure becomes a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/explain/fit.hpp"
#include "samebits/testkit/conversion.hpp"

namespace samebits::testkit {

/// The smallest failing call that was found.
struct failed_call {
  trial in;
  verdict found;
  explanation why;  ///< empty unless a result is wrong
  std::string how;  ///< which stage found the failure, and after how many results
};

struct conversion_outcome {
  std::uint64_t compared;
  std::optional<failed_call> failure;
};

/// The calls of a check, besides their effort.
struct call_plan {
  /// The first calls have few elements: a function that refuses some sizes refuses a small one first.
  bool sizes_first = false;
  int in_offsets = 17;   ///< offsets of inputs are 0 .. in_offsets - 1
  int out_offsets = 17;  ///< 1, or as many as in_offsets
};

/// check_raw() for a function that sees the trial.
conversion_outcome check_calls(const conversion_under_test& conversion,
                               const array_function& function, const check_effort& effort,
                               const call_plan& plan = {});

/// Makes one call, on exactly these codes.
conversion_outcome check_one_call(const conversion_under_test& conversion,
                                  const array_function& function, code_list codes);

}  // namespace samebits::testkit
