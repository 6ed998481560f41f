// What the probes of a self-test report: the first wrong result under each rule of arithmetic.
#pragma once

#include <cstdint>

namespace samebits::backends {

/// What a process, a build or a GPU can get wrong; what it means is worded in self_test.cpp.
enum class probe : std::uint8_t {
  contraction,
  flush_to_zero,
  denormals_are_zero,
  rounding_direction,
  division,
  reciprocal,
  square_root,
  reassociation,
  nan,
  signed_zero,
  excess_precision,
};
inline constexpr int probe_count = 11;
/// Names of the checks, in the order of probe.
inline constexpr const char* probe_names[probe_count] = {
    "contraction", "flush_to_zero", "denormals_are_zero", "rounding_direction",
    "division",    "reciprocal",    "square_root",        "reassociation",
    "nan",         "signed_zero",   "excess_precision",
};

/// Plain data: a kernel fills it too.
struct probe_outcome {
  std::uint64_t got;
  std::uint64_t expected;
  int bits;  ///< width of both: 32, 64, or 1 for a truth value; 0: all results were right
};

struct probe_report {
  probe_outcome of[probe_count];
};

/// What a device backend's kernels return instead of the codes that the definition has.
struct code_report {
  probe_outcome conversion;
  probe_outcome quantization;
};

}  // namespace samebits::backends
