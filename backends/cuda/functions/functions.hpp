// Functions of arrays on the CUDA backends: entry points, and the kernels that a rule chooses from.
#pragma once

#include "backends/dispatch/calls/evaluate.hpp"

namespace samebits::cuda {

/// Enqueue a checked, non-empty call on a stream (cudaStream_t), for cuda-emulated and cuda-native.
void enqueue_evaluate_emulated(const backends::evaluate_call& call, void* stream);
void enqueue_evaluate_native(const backends::evaluate_call& call, void* stream);

/// Launch parameters of a call of the rule `exact` (exact/exact_kernel.cuh).
struct exact_task;

/// The same for calls of the rule `exact`: in integers, or by binary64 instructions.
void launch_exact_definition(const backends::evaluate_call& call, void* stream);
void launch_exact_native(const backends::evaluate_call& call, void* stream);

/// Enqueue a call of the rule `exact` by faster kernels with the same results, for cuda-native: a
/// table of all operands of 16 bits, or approximations with a rounding test. Return false if the
/// kernels do not serve the call.
bool launch_exact_table(const backends::evaluate_call& call, const exact_task& task, void* stream);
bool launch_approximation(const backends::evaluate_call& call, const exact_task& task,
                          void* stream);

/// The kernels of all rules but `exact` in integers, on any GPU.
void launch_definition_functions(const backends::evaluate_call& call, void* stream);

/// Whether the current device's function units return the model's results, and its loaded kernels
/// can run them: compute capability 9.0, compiled for it, and no difference in every 1021st of the
/// 2^32 operands of each instruction. The first call on a device runs these comparisons on a stream
/// of its own and waits for them.
bool units_hold();

/// The kernels of all rules but `exact` by the GPU's instructions. Require units_hold(). One
/// translation unit per format and gradient: each has up to 27 kernels.
template <format_id Format, bool Gradient>
void launch_functions(const backends::evaluate_call& call, void* stream);

}  // namespace samebits::cuda
