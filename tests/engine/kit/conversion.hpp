// A check of a conversion before its failure becomes a text.
#pragma once

#include "engine/kit/failed_call.hpp"
#include "samebits/testkit/conversion.hpp"

namespace samebits::testkit {

/// The calls of a check, besides their effort.
struct call_plan {
  /// The first calls have few elements: a function that refuses some sizes refuses a small one first.
  bool sizes_first = false;
  int in_offsets = 17;   ///< offsets of inputs are 0 .. in_offsets - 1
  int out_offsets = 17;  ///< 1, or as many as in_offsets
};

/// check_raw() for a function that sees the trial.
check_outcome check_calls(const conversion_under_test& conversion, const array_function& function,
                          const check_effort& effort, const call_plan& plan = {});

}  // namespace samebits::testkit
