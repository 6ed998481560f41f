// Reductions of matrices of any format, strides and alignment, code by code; and the kernels that
// combine the partial sums of chunks.
//
// A sum takes three kinds of launches:
//   partial_sums_kernel   one warp per chunk of 4096 elements: one partial sum per chunk
//   combine_kernel        one block per 4096 partial sums, while there are more than 4096; then one
//                         block: the result
#include "backends/cuda/reductions/reductions.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/reductions/reduction_parts.cuh"
#include "backends/self_test/self_test.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits::cuda {
namespace {

using backends::reduction;
using backends::reduction_call;
using numerics::chunk_elements;

/// A matrix that kernels read element by element.
struct strided_elements : cells {
  format_spec format;

  __device__ std::uint32_t code(std::uint64_t row, std::uint64_t col) const {
    return static_cast<std::uint32_t>(load_code(at(row, col), format.storage_bits / 8));
  }
  __device__ float value(std::uint64_t row, std::uint64_t col) const {
    return __uint_as_float(numerics::decode<std::uint32_t>(format, code(row, col)));
  }
};

/// Launch parameters of the kernels in this file. y is used by dot products only.
struct reduction_task {
  strided_elements x, y;
  std::uint64_t count, cols;
  reduction what;

  /// The input of the sum at (row, col): x, x * x or x * y.
  template <class Number>
  __device__ Number input(std::uint64_t row, std::uint64_t col) const {
    const float a = x.value(row, col);
    if (what == reduction::sum) return static_cast<Number>(a);
    return product<Number>(a, what == reduction::dot ? y.value(row, col) : a);
  }
};

reduction_task task_of(const reduction_call& call) {
  reduction_task t{{cells_of(call.x), spec_of(call.x.format)},
                   {},
                   size_of(call.x),
                   static_cast<std::uint64_t>(call.x.cols),
                   call.what};
  if (call.what == reduction::dot) t.y = {cells_of(call.y), spec_of(call.y.format)};
  return t;
}

/// Calls f(row, col) for this thread's share of the elements, in a grid-stride loop in row-major
/// order.
template <class Function>
__device__ void for_each_element(const reduction_task& t, const Function& f) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * reduction_threads;
#pragma unroll 1
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * reduction_threads + threadIdx.x; i < t.count;
       i += step) {
    const std::uint64_t row = i / t.cols;
    f(row, i - row * t.cols);
  }
}

/// The amax of a matrix. One element per thread and step; one atomic maximum per warp.
__global__ void __launch_bounds__(reduction_threads)
    amax_kernel(const reduction_task t, std::uint32_t* const result) {
  const auto keep = static_cast<std::uint32_t>(numerics::magnitude_mask(t.x.format));
  std::uint32_t largest = 0;
  for_each_element(t, [&](std::uint64_t row, std::uint64_t col) {
    largest = max(largest, t.x.code(row, col) & keep);
  });
  raise_amax(t.x.format, largest, result);
}

/// Counts of NaN, Inf, zeros and subnormals. One element per thread and step; atomic additions per
/// warp.
__global__ void __launch_bounds__(reduction_threads)
    counts_kernel(const reduction_task t, element_counts* const result) {
  code_counts counts;
  for_each_element(
      t, [&](std::uint64_t row, std::uint64_t col) { counts.add(t.x.format, t.x.code(row, col)); });
  add_counts(counts, result);
}

/// Stores the number of elements in the counts. One thread.
__global__ void elements_kernel(const std::uint64_t count, element_counts* const result) {
  result->elements = count;
}

/// The partial sum of each chunk. One warp per chunk; each lane sums 128 neighbouring elements.
template <class Number>
__global__ void __launch_bounds__(reduction_threads)
    partial_sums_kernel(const reduction_task t, Number* const partial_sums) {
  using sums = signed_sums<Number>;
  constexpr std::uint64_t each = chunk_elements / 32;
  const std::uint64_t chunks = (t.count + chunk_elements - 1) / chunk_elements;
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (reduction_threads / 32);
  for (std::uint64_t chunk = (std::uint64_t{blockIdx.x} * reduction_threads + threadIdx.x) / 32;
       chunk < chunks; chunk += warps) {
    const std::uint64_t first = chunk * chunk_elements + lane * each;
    std::uint64_t row = first / t.cols, col = first - row * t.cols;
    Number waiting[8];
    std::uint64_t inputs = 0;
#pragma unroll 1
    for (std::uint64_t i = 0; i < each; ++i) {
      const Number input = first + i < t.count ? t.input<Number>(row, col) : sums::no_partial_sum();
      numerics::append_input(waiting, inputs, input,
                             [](Number a, Number b) { return sums::add_partial_sums(a, b); });
      if (++col == t.cols) ++row, col = 0;
    }
    const Number partial_sum = warp_partial_sum<sums>(waiting[7]);
    if (lane == 0) partial_sums[chunk] = partial_sum;
  }
}

/// Partial sums that one block combines.
constexpr std::uint64_t partial_sums_per_block = 4096;

/// One level: combines partial_sums_per_block neighbouring partial sums per block. Root: the last
/// level, which writes the call's result; one block.
template <class Number, bool Root>
__global__ void __launch_bounds__(reduction_threads)
    combine_kernel(const Number* const partial_sums, const std::uint64_t count,
                   std::conditional_t<Root, double, Number>* const combined) {
  using tree = block_tree<signed_sums<Number>, reduction_threads>;
  __shared__ typename tree::scratch scratch;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * partial_sums_per_block;
  const std::uint64_t own = min(partial_sums_per_block, count - first);
  const Number sum =
      tree::sum(own, scratch, [&](std::uint64_t i) { return partial_sums[first + i]; });
  if (threadIdx.x != 0) return;
  if constexpr (Root) {
    *combined = returned_sum(sum);
  } else {
    combined[blockIdx.x] = sum;
  }
}

/// A sequential dot product: one thread adds the products in index order; all threads of the block
/// compute products. One block.
template <class Number>
__global__ void __launch_bounds__(reduction_threads)
    sequence_kernel(const reduction_task t, double* const result) {
  constexpr unsigned part = 2048;
  __shared__ Number inputs[part];
  Number total = signed_sums<Number>::no_partial_sum();
  for (std::uint64_t first = 0; first < t.count; first += part) {
    const auto n = static_cast<unsigned>(min(static_cast<std::uint64_t>(part), t.count - first));
    for (unsigned i = threadIdx.x; i < n; i += reduction_threads) {
      const std::uint64_t row = (first + i) / t.cols;
      inputs[i] = t.input<Number>(row, first + i - row * t.cols);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned i = 0; i < n; ++i)
        total = signed_sums<Number>::add_partial_sums(total, inputs[i]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *result = returned_sum(total);
}

constexpr std::uint64_t max_blocks = 1u << 12;

std::uint64_t chunks_of(std::uint64_t count) {
  return (count + chunk_elements - 1) / chunk_elements;
}
std::uint64_t combined(std::uint64_t partial_sums) {
  return (partial_sums + partial_sums_per_block - 1) / partial_sums_per_block;
}

/// Whether the kernels of native.cu, which load 16 bytes at a time, compute the call.
bool is_wide(const reduction_call& call, arithmetic by) {
  const auto fits = [](const const_matrix_view& v) { return is_flat(v) && is_aligned(v.data, 16); };
  return by == arithmetic::hardware && fits(call.x) &&
         (call.what != reduction::dot || (call.x.format == call.y.format && fits(call.y)));
}

template <class Number>
void enqueue_tree(const reduction_call& call, arithmetic by, double* result, std::byte* memory,
                  cudaStream_t stream) {
  auto* partial_sums = reinterpret_cast<Number*>(memory);
  const reduction_task t = task_of(call);
  std::uint64_t count = chunks_of(t.count);
  if (is_wide(call, by)) {
    enqueue_wide(call, t.count, partial_sums, stream);
  } else {
    launch_kernel("reduction", partial_sums_kernel<Number>,
                  grid_for(count, reduction_threads / 32, max_blocks), reduction_threads, 0, stream,
                  t, partial_sums);
  }
  while (count > partial_sums_per_block) {
    const std::uint64_t next = combined(count);
    launch_kernel("reduction", combine_kernel<Number, false>, static_cast<unsigned>(next),
                  reduction_threads, 0, stream, partial_sums, count, partial_sums + count);
    partial_sums += count;
    count = next;
  }
  launch_kernel("reduction", combine_kernel<Number, true>, 1, reduction_threads, 0, stream,
                partial_sums, count, result);
}

template <class Number>
void enqueue_sum(const reduction_call& call, arithmetic by, void* to, cudaStream_t stream) {
  auto* const result = static_cast<double*>(to);
  if (call.what == reduction::dot && call.options.order == sum_order::sequential) {
    launch_kernel("reduction", sequence_kernel<Number>, 1, reduction_threads, 0, stream,
                  task_of(call), result);
    return;
  }
  const workspace room(call.workspace, reduction_bytes(call), stream, "reduction: workspace");
  enqueue_tree<Number>(call, by, result, room.data(), stream);
}

/// Enqueues an amax or counts of a matrix that is not empty. The result starts as zeros.
template <class Kernel, class Result>
void enqueue_elements(const reduction_call& call, arithmetic by, Kernel kernel, Result* result,
                      cudaStream_t stream) {
  const reduction_task t = task_of(call);
  if (is_wide(call, by)) return enqueue_wide(call, t.count, result, stream);
  launch_kernel("reduction", kernel, grid_for(t.count, reduction_threads, max_blocks),
                reduction_threads, 0, stream, t, result);
}

void enqueue_on_device(const reduction_call& call, arithmetic by, void* result,
                       cudaStream_t stream) {
  const std::uint64_t count = size_of(call.x);
  if (call.what == reduction::amax) {
    check(cudaMemsetAsync(result, 0, sizeof(float), stream), "amax: clear the result");
    if (count == 0) return;
    enqueue_elements(call, by, amax_kernel, static_cast<std::uint32_t*>(result), stream);
  } else if (call.what == reduction::counts) {
    check(cudaMemsetAsync(result, 0, sizeof(element_counts), stream), "counts: clear the result");
    if (count == 0) return;
    auto* const counts = static_cast<element_counts*>(result);
    launch_kernel("reduction", elements_kernel, 1, 1, 0, stream, count, counts);
    enqueue_elements(call, by, counts_kernel, counts, stream);
  } else if (count == 0) {
    check(cudaMemsetAsync(result, 0, sizeof(double), stream), "sum of nothing");
  } else if (call.what == reduction::dot && call.options.precision == accumulation::fp32) {
    enqueue_sum<float>(call, by, result, stream);
  } else {
    enqueue_sum<double>(call, by, result, stream);
  }
}

}  // namespace

std::size_t reduction_bytes(const reduction_call& call) {
  std::uint64_t partial_sums = chunks_of(size_of(call.x));
  std::size_t all = partial_sums;
  for (; partial_sums > partial_sums_per_block; all += partial_sums)
    partial_sums = combined(partial_sums);
  return std::max<std::size_t>(all, 1) * sizeof(double);  // the partial sums of all levels
}

void enqueue_reduction(const reduction_call& call, arithmetic by, void* on) {
  const auto stream = static_cast<cudaStream_t>(on);
  if (call.result == nullptr) return enqueue_on_device(call, by, call.result_on_device, stream);
  const workspace room(nullptr, sizeof(element_counts), stream, "reduction: result");
  enqueue_on_device(call, by, room.data(), stream);
  const auto copy = [&](auto& to) {
    check(cudaMemcpyAsync(&to, room.data(), sizeof to, cudaMemcpyDeviceToHost, stream),
          "reduction: copy from the device");
  };
  backends::reduction_result& result = *call.result;
  if (call.what == reduction::amax) {
    copy(result.amax);
  } else if (call.what == reduction::counts) {
    copy(result.counts);
  } else {
    copy(result.sum);
  }
  check(cudaStreamSynchronize(stream), "reduction");
}

}  // namespace samebits::cuda
