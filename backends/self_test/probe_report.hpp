// Probe report: the first wrong result of a self-test for each property of the arithmetic.
#pragma once

#include <cstdint>

namespace samebits::backends {

/// Properties that a process, a build or a GPU can break. self_test.cpp words the explanations.
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
/// Names of the checks, in the order of enum probe.
inline constexpr const char* probe_names[probe_count] = {
    "contraction", "flush_to_zero", "denormals_are_zero", "rounding_direction",
    "division",    "reciprocal",    "square_root",        "reassociation",
    "nan",         "signed_zero",   "excess_precision",
};

/// The outcome of one probe. Plain data, because kernels fill it too.
struct probe_outcome {
  std::uint64_t got;
  std::uint64_t expected;
  /// Width of `got` and `expected`: 32, 64, or 1 for a truth value; 0: all results were right.
  int bits;
};

/// The outcome of every probe, in the order of enum probe.
struct probe_report {
  probe_outcome of[probe_count];
};

/// Wrong codes from a device backend's kernels, compared with the definition.
struct code_report {
  probe_outcome conversion;
  probe_outcome quantization;
};

}  // namespace samebits::backends
