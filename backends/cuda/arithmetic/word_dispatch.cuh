// Selects the instance of words_kernel for a call's operation and overflow policy.
#pragma once

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
  switch (op) {
    case operation::add: return launch_policy<operation::add, F>(policy, t, stream);
    case operation::sub: return launch_policy<operation::sub, F>(policy, t, stream);
    case operation::mul: return launch_policy<operation::mul, F>(policy, t, stream);
    case operation::div: return launch_policy<operation::div, F>(policy, t, stream);
    case operation::sqrt: return launch_policy<operation::sqrt, F>(policy, t, stream);
    case operation::fma: return launch_policy<operation::fma, F>(policy, t, stream);
    case operation::min: return launch_policy<operation::min, F>(policy, t, stream);
    case operation::max: return launch_policy<operation::max, F>(policy, t, stream);
    case operation::min_num: return launch_policy<operation::min_num, F>(policy, t, stream);
    case operation::max_num: return launch_policy<operation::max_num, F>(policy, t, stream);
    case operation::rem:
    case operation::rint: break;
  }
}

}  // namespace samebits::cuda
