// Optimizer steps on CUDA: the launches of a step, of a store and of a load.
#pragma once

#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/dispatch/calls/optimizer.hpp"

namespace samebits::cuda {

/// Enqueues an optimizer step. Nothing waits for the host. Launches:
/// - One for each formula among the groups; three for rule lamb. A formula is a rule and a profile;
///   SGD with momentum and SGD without are two formulas.
/// - arithmetic::by_definition: one for all formulas of rules other than lamb.
/// - One more for each 32 groups, of a thread per group, if a decision or learning rates are in
///   device memory, or if there are more than argument_groups groups.
void enqueue_step(const backends::optimizer_call& call, arithmetic by, void* stream);

/// Enqueues a store or a load, in one launch.
void enqueue_store(const backends::store_call& call, arithmetic by, void* stream);

}  // namespace samebits::cuda
