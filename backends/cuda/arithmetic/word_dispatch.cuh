// Selects the instance of words_kernel for a call's operation and overflow policy.
#pragma once

#include "backends/cuda/arithmetic/arithmetic.hpp"
#include "backends/cuda/arithmetic/word_steps.cuh"
#include "backends/cuda/arithmetic/words_kernel.cuh"

namespace samebits::cuda {

/// Launches the kernel for one operation and format.
template <operation Op, format_id F>
void launch_policy(overflow policy, const word_task& t, cudaStream_t stream) {
  if (policy == overflow::saturate) {
    launch_words<word_step<Op, F, overflow::saturate>>(t, stream);
  } else {
    launch_words<word_step<Op, F, overflow::ieee>>(t, stream);
  }
}

/// Launches the kernel for one format; does nothing for operations that are not
/// is_computed_by_gpu().
template <format_id F>
void launch_format(operation op, overflow policy, const word_task& t, cudaStream_t stream) {
  with_enumerator(op, [&]<operation Op>() {
    if constexpr (is_computed_by_gpu(Op)) {
      launch_policy<Op, F>(policy, t, stream);
    }
  });
}

}  // namespace samebits::cuda
