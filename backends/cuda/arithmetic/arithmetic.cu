// Array arithmetic by the definition on CUDA: one kernel per operation, for any formats, rules,
// strides and alignment, with flags. One element per thread in a grid-stride loop.
#include "backends/cuda/arithmetic/arithmetic.hpp"

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/self_test/self_test.hpp"
#include "numerics/arithmetic/arithmetic.hpp"

namespace samebits::cuda {
namespace {

using backends::compute_call;
using backends::flag_report;
using backends::max_operands;

/// Launch parameters of definition_kernel.
struct compute_task {
  cells in[max_operands];
  cells out;
  cells each;  ///< flags of each element; data is null unless wanted
  format_spec from[max_operands];
  format_spec to;
  cast_rule rule;
  random_source random;
  std::uint64_t count, cols;
  std::uint64_t index, pitch;
  unsigned* raised;  ///< combined flags; null unless wanted
  bool natural;      ///< every code is aligned to its width
};

/// Computes Op for every element by the definition. One element per thread and step. Flags are
/// combined per warp, then by one atomic or.
template <operation Op>
__global__ void __launch_bounds__(block_threads) definition_kernel(const compute_task t) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * block_threads;
  flags raised = flags::none;
#pragma unroll 1
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; i < t.count;
       i += step) {
    const std::uint64_t row = t.cols == t.count ? 0 : i / t.cols;
    const std::uint64_t col = i - row * t.cols;
    numerics::input x[max_operands] = {};
#pragma unroll
    for (int k = 0; k < operand_count(Op); ++k) {
      const std::byte* const p = t.in[k].at(row, col);
      const int bytes = t.from[k].storage_bits / 8;
      x[k] = {t.from[k], t.natural ? load_aligned(p, bytes) : load_code(p, bytes)};
    }
    std::uint64_t dither = 0;
    if (t.rule.rounding == rounding::stochastic) {
      const std::uint32_t random_word = dither_of(t.random, t.index + row * t.pitch + col);
      dither = static_cast<std::uint64_t>(random_word) << 32;
    }
    const numerics::outcome result = numerics::compute<Op>(x[0], x[1], x[2], t.to, t.rule, dither);
    std::byte* const out = t.out.at(row, col);
    if (t.natural) {
      store_aligned(out, t.to.storage_bits / 8, static_cast<std::uint32_t>(result.code));
    } else {
      store_code(out, t.to.storage_bits / 8, result.code);
    }
    if (t.each.data != nullptr) *t.each.at(row, col) = static_cast<std::byte>(result.raised);
    raised |= result.raised;
  }
  if (t.raised == nullptr) return;
  const unsigned of_warp = __reduce_or_sync(all_lanes, static_cast<unsigned>(raised));
  if (threadIdx.x % 32 == 0 && of_warp != 0) atomicOr(t.raised, of_warp);
}

/// Whether all elements have one distance, so that the matrix can be indexed as one row.
bool is_one_row(const cells& c, std::uint64_t rows, std::uint64_t cols) {
  return rows == 1 || c.row_bytes == cols * c.col_bytes;
}

compute_task task_of(const compute_call& call, std::uint32_t* raised) {
  compute_task t{};
  const auto rows = static_cast<std::uint64_t>(call.out.rows);
  t.cols = static_cast<std::uint64_t>(call.out.cols);
  t.count = rows * t.cols;
  t.out = cells_of(call.out);
  t.to = spec_of(call.out.format);
  t.rule = call.rule;
  t.random = source_of(call.random);
  t.index = call.random.offset;
  t.pitch = call.pitch;
  if (call.report == flag_report::wanted) t.raised = raised;
  // Strides are whole codes, so that all codes of a matrix are aligned alike.
  const auto is_natural = [](const const_matrix_view& v) {
    return is_aligned(v.data, static_cast<std::uint64_t>(storage_bytes(v.format)));
  };
  t.natural = is_natural(call.out);
  bool one_row = is_one_row(t.out, rows, t.cols) &&
                 (call.rule.rounding != rounding::stochastic || call.pitch == t.cols);
  for (int k = 0; k < operand_count(call.op); ++k) {
    t.in[k] = cells_of(call.operands[k]);
    t.from[k] = spec_of(call.operands[k].format);
    one_row = one_row && is_one_row(t.in[k], rows, t.cols);
    t.natural = t.natural && is_natural(call.operands[k]);
  }
  if (call.each.data != nullptr) {
    t.each = {reinterpret_cast<std::byte*>(call.each.data),
              static_cast<std::uint64_t>(call.each.row_stride),
              static_cast<std::uint64_t>(call.each.col_stride)};
    one_row = one_row && is_one_row(t.each, rows, t.cols);
  }
  if (one_row) t.cols = t.count;
  return t;
}

/// Enqueues a call by the definition, for any layout. `raised`: device memory for the flags, read
/// and written only if the call wants a report.
void enqueue_definition(const compute_call& call, std::uint32_t* raised, cudaStream_t stream) {
  if (call.report == flag_report::wanted) {
    check(cudaMemsetAsync(raised, 0, sizeof *raised, stream), "compute: clear the flags");
  }
  const compute_task task = task_of(call, raised);
  if (task.count == 0) return;
  constexpr std::uint64_t max_blocks = 1u << 14;  // bounds the atomic updates of the flags
  with_enumerator(call.op, [&]<operation Op>() {
    launch_kernel("cuda-emulated: compute", definition_kernel<Op>,
                  grid_for(task.count, block_threads, max_blocks), block_threads, 0, stream, task);
  });
}

}  // namespace

void enqueue_compute(const compute_call& call, arithmetic by, void* stream) {
  // Strided and unaligned views use the definition's kernel, which gives the same bits.
  if (by == arithmetic::hardware && try_enqueue_words(call, stream)) return;
  const auto on = static_cast<cudaStream_t>(stream);
  if (call.all == nullptr) return enqueue_definition(call, call.all_on_device, on);
  const workspace room(nullptr, sizeof(std::uint32_t), on, "compute_with_flags: workspace");
  auto* const raised = reinterpret_cast<std::uint32_t*>(room.data());
  enqueue_definition(call, raised, on);
  std::uint32_t seen = 0;
  check(cudaMemcpyAsync(&seen, raised, sizeof seen, cudaMemcpyDeviceToHost, on),
        "compute_with_flags: copy from the device");
  check(cudaStreamSynchronize(on), "compute_with_flags");
  *call.all = static_cast<flags>(seen);
}

bool native_computes(const compute_call& call) {
  return backends::is_proved_equal(call,
                                   [](operation op, format_id) { return is_computed_by_gpu(op); });
}

}  // namespace samebits::cuda
