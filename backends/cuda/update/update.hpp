// Optimizer steps on CUDA: the launch of a step.
#pragma once

#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/dispatch/optimizer.hpp"

namespace samebits::cuda {

/// Enqueues an optimizer step. Nothing waits for the host. Launches: one for each formula (rule and
/// profile) among the groups; three for rule lamb. One more, of a few threads, if a decision or
/// learning rates are in device memory, or if there are many groups.
void enqueue_step(const backends::optimizer_call& call, arithmetic by, void* stream);

}  // namespace samebits::cuda
