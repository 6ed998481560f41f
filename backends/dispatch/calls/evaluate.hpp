// Functions of arrays: the checked calls that a backend receives.
#pragma once

#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "numerics/functions/exact_functions.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/evaluate.hpp"

namespace samebits::backends {

/// A checked call: out = f(in), or grad * f'(in). All views have one shape, and the plan's format.
struct evaluate_call {
  numerics::function_plan plan;
  const_matrix_view in;
  const_matrix_view grad;  ///< data only if the gradient is wanted
  matrix_view out;
  /// The rule `exact` alone reads the rest. It rounds once, into any format of `out`; `in` and
  /// `grad` are in fp32, fp16 or bf16, `out` in these, e4m3 or e5m2.
  numerics::real::exact_function exact = {};  ///< f, or its gradient
  cast_rule rule = {};  ///< to nearest even, or stochastic with at most 16 random bits
  random_stream random = {};
  std::uint64_t pitch = 0;  ///< elements from one row to the next, for the random bits

  [[nodiscard]] bool is_exact() const { return plan.rule == function_rule::exact; }
};

/// Elements of a chunk, one per word. Kernels may read and write up to the next multiple of 16.
struct function_chunk {
  static constexpr int size = 512;
  alignas(64) std::uint32_t x[size] = {};     ///< codes of `in`; kernels may change them
  alignas(64) std::uint32_t grad[size] = {};  ///< codes of `grad`; kernels may change them
  alignas(64) std::uint32_t codes[size];      ///< kernels write the codes of `out`
  alignas(64) std::uint64_t dither[size];     ///< random bits at the top of the word, if stochastic
  alignas(64) std::uint64_t y[size];          ///< scratch memory of kernels
};

/// A kernel: computes chunk.codes for `count` elements.
using function_codes = void (*)(const evaluate_call& call, function_chunk& chunk, int count);

}  // namespace samebits::backends
