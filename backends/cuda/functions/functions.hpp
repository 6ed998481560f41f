// Functions of arrays on the CUDA backends: entry points, and the kernels that a rule chooses from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/fused.hpp"
#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/dispatch/calls/sums.hpp"

namespace samebits::cuda {

// Enqueue a checked, non-empty call on a stream (cudaStream_t).
void enqueue_evaluate(const backends::evaluate_call& call, arithmetic by, void* stream);
void enqueue_fused(const backends::fused_call& call, arithmetic by, void* stream);
void enqueue_rows(const backends::row_call& call, arithmetic by, void* stream);
/// Fused elements and their quantization: by one kernel, or through a matrix in the stream's memory
/// pool.
void enqueue_fused_quantize(const backends::fused_quantize_call& call, arithmetic by, void* stream);
void enqueue_cross_entropy(const backends::cross_entropy_call& call, arithmetic by, void* stream);
/// Bytes of device memory that a call needs.
std::size_t cross_entropy_bytes(const backends::cross_entropy_call& call);
/// Calls of one block (torch::parameter_order).
bool has_norm_parameters(const backends::norm_parameters_call& call);
void enqueue_norm_parameters(const backends::norm_parameters_call& call, arithmetic by,
                             void* stream);
/// Calls of matrices whose rows are dense.
bool has_embedding_gradient(const backends::device_embedding_call& call);
void enqueue_embedding_gradient(const backends::device_embedding_call& call, arithmetic by,
                                void* stream);

/// Whether the current device's function units return the model's results, and its loaded kernels
/// can run them: compute capability 9.0, compiled for it, and no difference in every 1021st of the
/// 2^32 operands of each instruction. The first call on a device runs these comparisons on a stream
/// of its own and waits for them.
bool units_hold();
/// Whether a call is computed by the function units.
inline bool by_units(arithmetic by) { return by == arithmetic::hardware && units_hold(); }

/// Enqueues a call by a table of the results of all operands of 16 bits, for both backends. Returns
/// false if a table does not serve the call. The definition computes a table when the first call
/// needs it; this call waits.
bool launch_table(const backends::evaluate_call& call, void* stream);
/// The kernels of every rule in integers, on any GPU.
void launch_definition(const backends::evaluate_call& call, void* stream);
/// The same for calls of the rule `exact`: in integers, or by binary64 instructions.
void launch_exact_definition(const backends::evaluate_call& call, void* stream);
void launch_exact_native(const backends::evaluate_call& call, void* stream);
/// The kernels of all rules but `exact`: in integers, on any GPU, or by the GPU's instructions.
void launch_definition_functions(const backends::evaluate_call& call, void* stream);
void launch_instruction_functions(const backends::evaluate_call& call, void* stream);

// Kernels in a format by the GPU's instructions. Those and launch_instruction_functions() require
// units_hold().

struct row_launch;        // functions of rows: rows/row_operands.cuh
struct parameter_launch;  // gradients of norms' parameters: rows/norm_parameters.cuh
struct tile_task;         // backends/cuda/quantize/tiles/tile_task.cuh

template <format_id Format>
void launch_native_rows(const row_launch& d, void* stream);
template <format_id Format>
void launch_native_loss(const row_launch& d, std::uint32_t* words, void* stream);
template <format_id Format>
void launch_native_parameters(const parameter_launch& d, void* stream);
template <format_id Format>
void launch_native_fused(const backends::fused_call& call, void* stream);
/// gated() quantized in 1 x 128 tiles.
template <format_id Format>
void launch_native_tiles(const backends::fused_quantize_call& call, const tile_task& task,
                         void* stream);
/// Enqueues a norm whose result is quantized in 1 x 128 tiles, if its kernel serves the call; else
/// returns false.
bool launch_norm_tiles(const backends::fused_quantize_call& call, const tile_task& task,
                       void* stream);
template <format_id Format>
bool launch_native_norm_tiles(const row_launch& d, const tile_task& task, format_id to,
                              void* stream);

}  // namespace samebits::cuda
