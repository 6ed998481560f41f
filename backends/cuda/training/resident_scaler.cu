// Loss scaling in the caller's memory on CUDA. The launches of one call, in order:
//
//   unscale, no clipping   clear_kernel, the scale kernel of lists, scaled_kernel
//   other unscale calls    the inspect kernels of lists, inspected_kernel, and the scale kernel of
//                          lists unless the gradients are only read
//   update                 update_kernel
//
// Only the kernels of lists read gradients: once each. The others are one thread or one block.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/tensor_list/list.hpp"
#include "backends/cuda/tensor_list/list_total.cuh"
#include "backends/cuda/training/device_report.cuh"
#include "backends/cuda/training/scaler_policy.cuh"
#include "backends/cuda/training/training.hpp"
#include "backends/self_test/self_test.hpp"
#include "numerics/loss_scale/gradient_report.hpp"

namespace samebits::cuda {
namespace {

using numerics::gradient_report;
using numerics::scaler_words;
using numerics::tensor_tables;
using numerics::unscale_rule;

/// Sets an unscale_report to the values that the scale kernel starts from. One thread.
__global__ void clear_kernel(unscale_report* const seen) { *seen = unscale_report{}; }

/// Writes the gradient report after the scale kernel. One thread.
__global__ void scaled_kernel(const unscale_report* const seen, const unscale_rule rule,
                              const scaler_words* const words, gradient_report* const out) {
  *out = numerics::report_of_unscaling(*words, rule, seen->nonfinite, seen->overflowed,
                                       seen->amax_bits, seen->first_bad);
}

/// Writes the gradient report after the inspect kernels. One block.
template <class Arithmetic>
__global__ void __launch_bounds__(total_threads)
    inspected_kernel(const tensor_statistics* const tensors, const std::uint64_t count,
                     const unscale_rule rule, const scaler_words* const words,
                     gradient_report* const out) {
  __shared__ total_scratch<Arithmetic> scratch;
  const list_total total = total_of<Arithmetic>(tensors, count, scratch);
  if (threadIdx.x != 0) return;
  *out = numerics::report_of_inspection(*words, rule, total.totals.squares, total.totals.amax,
                                        total.first_bad);
}

/// Ends a step: the policy sets the next scale, and the ring receives a report. One thread.
__global__ void update_kernel(const __grid_constant__ scaler_policy policy,
                              scaler_words* const words, const gradient_report* const reports,
                              const std::uint64_t count, numerics::report_slot* const ring,
                              const std::uint64_t capacity) {
  policy.visit([&](const auto& settings, auto& scaler) {
    device::put_report(ring, capacity,
                       numerics::end_step(settings, scaler, *words, reports, count));
  });
}

/// The tables of a list at the caller's address.
tensor_tables tables_at(const backends::list_data& list, const std::byte* tables) {
  return {reinterpret_cast<const numerics::list_row*>(tables),
          reinterpret_cast<const std::uint32_t*>(tables + list.rows_bytes()), list.rows.size(),
          list.row_of_chunk.size()};
}

std::size_t workspace_of(const backends::list_data& list) {
  memory_layout layout;
  inspection_in(layout, tables_at(list, nullptr));
  return std::max(layout.bytes(), sizeof(unscale_report));
}

template <arithmetic By>
void enqueue_unscale(const backends::list_data& list, const unscale_rule& rule,
                     const backends::unscale_memory& memory, void* stream) {
  backends::require_tested(By == arithmetic::hardware ? native : emulated, stream);
  const auto on = static_cast<cudaStream_t>(stream);
  const tensor_tables tables = tables_at(list, memory.tables);
  scale_factor factor;
  if (rule.rewrites && !rule.only_clips && rule.max_norm == numerics::binary64::inf) {
    auto* const seen = reinterpret_cast<unscale_report*>(memory.workspace);
    launch_kernel("unscale: clear kernel", clear_kernel, 1, 1, 0, on, seen);
    factor.pointer = &memory.words->inverse;
    enqueue_scale(tables, factor, seen, By, stream);
    launch_kernel("unscale: report kernel", scaled_kernel, 1, 1, 0, on, seen, rule, memory.words,
                  memory.report);
    return;
  }
  memory_layout layout(memory.workspace);
  const inspection_memory inspected = inspection_in(layout, tables);
  enqueue_tensor_statistics(tables, shape_of(list.rows), inspect_counts::nonfinite, inspected, By,
                            stream);
  with_arithmetic(By, [&](auto policy) {
    launch_kernel("unscale: report kernel", inspected_kernel<decltype(policy)>, 1, total_threads, 0,
                  on, inspected.tensors, tables.tensors, rule, memory.words, memory.report);
  });
  if (!rule.rewrites) return;
  factor.pointer = &memory.report->factor;
  factor.only_if = reinterpret_cast<const bool*>(&memory.report->writes);  // its low byte: 0 or 1
  enqueue_scale(tables, factor, nullptr, By, stream);
}

void enqueue_update(const scaling_settings& settings, const backends::update_memory& memory,
                    void* stream) {
  launch_kernel("update kernel of the loss scale", update_kernel, 1, 1, 0,
                static_cast<cudaStream_t>(stream), scaler_policy(settings, memory.state),
                memory.words, memory.reports, memory.count, memory.ring, memory.capacity);
}

}  // namespace

const backends::device_scaler_functions emulated_scaler = {
    workspace_of, enqueue_unscale<arithmetic::by_definition>, enqueue_update};
const backends::device_scaler_functions native_scaler = {
    workspace_of, enqueue_unscale<arithmetic::hardware>, enqueue_update};

}  // namespace samebits::cuda
