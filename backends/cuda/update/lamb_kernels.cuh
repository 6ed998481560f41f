// Kernels of rule lamb. A step has two passes over the elements, with one small kernel between them:
//
//   lamb_states_kernel   one block per chunk: states; sums of squares of the chunk
//   lamb_factors_kernel  one block per tensor: norms, and the factor of the direction
//   lamb_weights_kernel  one block per chunk: weights
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/update/update_kernel.cuh"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/update/lamb.hpp"

namespace samebits::cuda {

/// Lamb's kernels read all formats at run time.
template <class Steps>
using lamb_vector = update_vector<Steps, 8, false>;

/// u of element k of a vector.
template <class Formula, class Steps>
__device__ __forceinline__ std::uint32_t direction_of(const numerics::update_constants& c,
                                                      const lamb_vector<Steps>& v, int k) {
  const numerics::update_element<std::uint32_t> x = {v.weights.w[k], 0, v.states[0].w[k],
                                                     v.states[1].w[k]};
  return numerics::lamb_direction<Formula::profile, typename Steps::arithmetic>(c, x);
}

/// The sum of the squares of a thread's 8 elements, in the order of contract §6. value(k) is
/// element k; elements from `count` on are left out.
template <class Arithmetic, class Value>
__device__ __forceinline__ typename Arithmetic::partial_sum squares_of_vector(int count,
                                                                              const Value& value) {
  constexpr int unrolled = unrolled_elements<Arithmetic>;
  typename Arithmetic::partial_sum s[8];
#pragma unroll unrolled
  for (int k = 0; k < 8; ++k) {
    s[k] = k < count ? Arithmetic::square(value(k)) : Arithmetic::no_partial_sum();
  }
#pragma unroll unrolled
  for (int width = 4; width > 0; width /= 2) {
#pragma unroll unrolled
    for (int k = 0; k < width; ++k) s[k] = Arithmetic::add_partial_sums(s[2 * k], s[2 * k + 1]);
  }
  return s[0];
}

/// The sums of squares of a chunk. Each turn of the block adds 2048 elements: 8 of each thread.
template <class Arithmetic>
struct chunk_squares {
  using partial_sum = typename Arithmetic::partial_sum;
  static constexpr int warps = update_threads / 32;
  static constexpr int turns = 2;
  static_assert(warps * 32 * 8 * turns == numerics::chunk_elements);

  partial_sum of_warp[2][turns * warps];  ///< weights, directions

  /// Clears the sums. All threads of the block must call.
  __device__ void clear() {
    if (threadIdx.x < 2 * turns * warps) {
      of_warp[threadIdx.x / (turns * warps)][threadIdx.x % (turns * warps)] =
          Arithmetic::no_partial_sum();
    }
    __syncthreads();
  }
  /// Adds the sums of a thread's vector in a turn.
  __device__ void add(int turn, partial_sum weights, partial_sum direction) {
    const int n = turn * warps + static_cast<int>(threadIdx.x / 32);
    weights = warp_partial_sum<Arithmetic>(weights);
    direction = warp_partial_sum<Arithmetic>(direction);
    if (threadIdx.x % 32 == 0) of_warp[0][n] = weights, of_warp[1][n] = direction;
  }
  /// Stores the sums. All threads of the block must call.
  __device__ void store(lamb_squares& out) const {
    __syncthreads();
    if (threadIdx.x >= 32) return;
    static_assert(turns * warps == 16, "half a warp for each kind of sum");
    const partial_sum sum =
        warp_partial_sum<Arithmetic, 0, 4>(of_warp[threadIdx.x / 16][threadIdx.x % 16]);
    if (threadIdx.x == 0) out.weights = Arithmetic::bits(sum);
    if (threadIdx.x == 16) out.direction = Arithmetic::bits(sum);
  }
};

/// Updates the states of lamb's tensors, and sums the squares of weights and directions. One block
/// per chunk.
template <class Formula, class Arithmetic>
__global__ void __launch_bounds__(update_threads)
    lamb_states_kernel(const __grid_constant__ update_launch call) {
  __shared__ chunk_squares<Arithmetic> sums;
  const chunk_task task(call);
  if (!has_work<Formula>(*task.group)) return;
  sums.clear();
  int turn = 0;
  for_each_vector<any_stored<Arithmetic>, 8, false>(
      task, formats_of(task.row), 2, [&](lamb_vector<any_stored<Arithmetic>>& v) {
        const code_words<8> weights = v.weights;
        step_elements<Formula>(task.group->constants, v);
        v.weights = weights;
        v.write_and_reread_states();
        sums.add(
            turn++,
            squares_of_vector<Arithmetic>(v.place.count, [&](int k) { return v.weights.w[k]; }),
            squares_of_vector<Arithmetic>(v.place.count, [&](int k) {
              return direction_of<Formula>(task.group->constants, v, k);
            }));
      });
  sums.store(call.chunk_squares[blockIdx.x]);
}

/// Computes the factor of each tensor's direction. One block per tensor.
template <class Formula, class Arithmetic>
__global__ void __launch_bounds__(update_threads)
    lamb_factors_kernel(const __grid_constant__ update_launch call) {
  using tree = block_tree<Arithmetic, update_threads>;
  __shared__ typename tree::scratch scratch;
  const numerics::update_row& row = call.list.rows[blockIdx.x];
  const group_step& group = group_of(call, row.group);
  if (!has_work<Formula>(group)) return;
  const lamb_squares* const chunks = call.chunk_squares + row.first_chunk;
  const std::uint64_t count = numerics::chunks_of(row.count);
  const auto weights = tree::sum(
      count, scratch, [&](std::uint64_t i) { return Arithmetic::from_bits(chunks[i].weights); });
  __syncthreads();  // before scratch is used again
  const auto direction = tree::sum(
      count, scratch, [&](std::uint64_t i) { return Arithmetic::from_bits(chunks[i].direction); });
  if (threadIdx.x != 0) return;
  call.lamb_factors[blockIdx.x] =
      numerics::lamb_factor(group.constants, numerics::norm_of(Arithmetic::bits(weights)),
                            numerics::norm_of(Arithmetic::bits(direction)));
}

/// Moves the weights of lamb's tensors. One block per chunk.
template <class Formula, class Arithmetic>
__global__ void __launch_bounds__(update_threads)
    lamb_weights_kernel(const __grid_constant__ update_launch call) {
  constexpr int unrolled = unrolled_elements<Arithmetic>;
  const chunk_task task(call);
  if (!has_work<Formula>(*task.group)) return;
  const std::uint32_t factor = call.lamb_factors[task.chunk.tensor];
  for_each_vector<any_stored<Arithmetic>, 8, false>(
      task, formats_of(task.row), 2, [&](lamb_vector<any_stored<Arithmetic>>& v) {
#pragma unroll unrolled
        for (int k = 0; k < 8; ++k) {
          v.weights.w[k] = numerics::lamb_weight<Arithmetic>(
              factor, direction_of<Formula>(task.group->constants, v, k), v.weights.w[k]);
        }
        v.write_weights();
      });
}

/// Enqueues a step of all tensors whose groups have this formula of formulas::of_lamb.
template <class Formula, class Arithmetic>
void launch_lamb(const update_launch& call, void* stream) {
  const auto launch = [&](const char* what, auto kernel, std::uint64_t blocks) {
    launch_kernel(what, kernel, static_cast<unsigned>(blocks), update_threads, 0,
                  static_cast<cudaStream_t>(stream), call);
  };
  launch("lamb states kernel", lamb_states_kernel<Formula, Arithmetic>, call.list.chunks);
  launch("lamb factors kernel", lamb_factors_kernel<Formula, Arithmetic>, call.list.tensors);
  launch("lamb weights kernel", lamb_weights_kernel<Formula, Arithmetic>, call.list.chunks);
}

}  // namespace samebits::cuda
