// Kernels of optimizer steps. One block per chunk of up to 4096 elements; one thread per vector of
// neighbouring elements at a time.
//
// The formats of a tensor are read at run time. With update_hardware, common combinations of formats
// have code of their own.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "backends/cuda/update/group_steps.cuh"
#include "backends/cuda/update/storage/update_vector.cuh"
#include "backends/cuda/update/update_arithmetic.cuh"
#include "numerics/tensor_list/list.hpp"
#include "numerics/update/update.hpp"
#include "numerics/update/update_tables.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::cuda {

/// Minimum resident blocks of update_threads threads per multiprocessor.
inline constexpr int update_residents = 4;

/// Rounds to bf16 if `on`: the rounding of torch_foreach.
template <class Steps>
struct bf16_rounding {
  bool on;
  __device__ __forceinline__ std::uint32_t operator()(std::uint32_t x) const {
    return on ? Steps::to_bf16(x) : x;
  }
};

/// Computes one element.
template <class Formula, class Steps>
__device__ __forceinline__ void step_element(const numerics::update_constants& c, bool rounds,
                                             numerics::update_element<std::uint32_t>& x) {
  using arithmetic = typename Steps::arithmetic;
  if constexpr (Formula::profile == update_profile::torch_foreach) {
    Formula::template apply<arithmetic>(c, x, bf16_rounding<Steps>{rounds});
  } else {
    Formula::template apply<arithmetic>(c, x);
  }
}

/// Computes the elements of a vector whose codes have been decoded.
template <class Formula, class Steps, int V, bool Whole>
__device__ __forceinline__ void step_elements(const numerics::update_constants& c,
                                              update_vector<Steps, V, Whole>& v) {
  constexpr int unrolled = unrolled_elements<typename Steps::arithmetic>;
  const bool rounds = v.formats.weights == stored_format::bf16_nearest &&
                      v.formats.master == stored_format::none && v.formats.low == low_part::none;
#pragma unroll unrolled
  for (int k = 0; k < V; ++k) {
    numerics::update_element<std::uint32_t> x = {v.weights.w[k], v.gradient.w[k], 0, 0};
    if constexpr (Formula::states > 0) x.first = v.states[0].w[k];
    if constexpr (Formula::states > 1) x.second = v.states[1].w[k];
    step_element<Formula, Steps>(c, rounds, x);
    v.weights.w[k] = x.weight;
    if constexpr (Formula::states > 0) v.states[0].w[k] = x.first;
    if constexpr (Formula::states > 1) v.states[1].w[k] = x.second;
  }
}

/// Conversion of formats that are read at run time.
template <class Arithmetic>
using any_stored = stored_of_any_format<
    std::conditional_t<is_hardware<Arithmetic>, stored_by_instructions, stored_by_definition>>;

/// Whether all arrays of a tensor are aligned to 16 bytes.
__device__ __forceinline__ bool is_aligned(const numerics::update_row& row) {
  const auto bits = reinterpret_cast<std::uintptr_t>(row.weights.codes) |
                    reinterpret_cast<std::uintptr_t>(row.master.codes) |
                    reinterpret_cast<std::uintptr_t>(row.states[0].codes) |
                    reinterpret_cast<std::uintptr_t>(row.states[1].codes) |
                    reinterpret_cast<std::uintptr_t>(row.gradient) |
                    reinterpret_cast<std::uintptr_t>(row.low);
  return bits % 16 == 0;
}

/// The chunk of this block, its tensor, and the numbers of its group.
struct chunk_task {
  numerics::list_chunk chunk;
  const numerics::update_row& row;
  const group_step* group;
  const numerics::philox_keys& keys;
  bool aligned;

  __device__ __forceinline__ explicit chunk_task(const update_launch& call)
      : chunk(chunk_at(call.list, blockIdx.x)),
        row(call.list.rows[chunk.tensor]),
        group(&group_of(call, row.group)),
        keys(call.keys),
        aligned(is_aligned(row)) {}
};

/// Calls f(vector) for the thread's vectors of a chunk, with codes loaded and decoded. All threads
/// of a block make the same number of calls.
template <class Steps, int V, bool Whole, class Function>
__device__ __forceinline__ void for_each_vector(const chunk_task& task, const row_formats& formats,
                                                int states, const Function& f) {
  const int count = static_cast<int>(task.chunk.count);
#pragma unroll 1
  for (int turn = 0; turn < count; turn += static_cast<int>(blockDim.x) * V) {
    const int at = turn + static_cast<int>(threadIdx.x) * V;
    const int elements = min(max(count - at, 0), V);
    // A warp with an incomplete vector loads and stores single elements in all lanes: all lanes of a
    // warp take the same branch. With vector loads and stores in its other lanes, an element of a
    // whole vector kept its old weight on an H200 (SGD, Nesterov, fp32, cuda-native, nvcc 13.0).
    // Probable cause, read from the machine code of SGD with momentum, profile fma: a uniform
    // register, which a warp has once, kept the bytes of a code across the branch. The lanes of
    // the incomplete vector called store_some_codes(), which overwrites that register.
    const bool vectors = Whole || (task.aligned && __all_sync(all_lanes, elements == V));
    update_vector<Steps, V, Whole> v(
        task.row, formats, {task.chunk.first + at, elements, vectors, task.keys, task.group->step});
    v.load(states);
    v.decode(states);
    f(v);
  }
}

/// Updates a chunk. All threads of a block must call.
template <class Formula, class Steps, int V, bool Whole>
__device__ __forceinline__ void step_chunk(const chunk_task& task, const row_formats& formats) {
  for_each_vector<Steps, V, Whole>(task, formats, Formula::states,
                                   [&](update_vector<Steps, V, Whole>& v) {
                                     step_elements<Formula>(task.group->constants, v);
                                     v.write_states(Formula::states);
                                     v.write_weights();
                                   });
}

/// One of two formats, the same or of equal width.
struct either_format {
  stored_format first, second;

  [[nodiscard]] __device__ __forceinline__ constexpr bool has(stored_format f) const {
    return f == first || f == second;
  }
  /// A format that has(): the compiler sees that there are only two.
  [[nodiscard]] __device__ __forceinline__ constexpr stored_format known(stored_format f) const {
    return f == second ? second : first;
  }
};

/// Formats that have code of their own, for aligned arrays of whole vectors without low parts and
/// scales of gradients. Vectors of 8 elements begin at multiples of 8 in the unsharded parameter.
struct common_formats {
  either_format weights, gradient, master, states;
  int elements;  ///< of a thread's vector

  /// Whether a tensor has these formats. States that a rule lacks are ignored.
  template <int States>
  [[nodiscard]] __device__ __forceinline__ bool has(const chunk_task& task) const {
    const numerics::update_row& row = task.row;
    return task.aligned && task.chunk.count % elements == 0 && weights.has(row.weights_format) &&
           (elements == 4 || row.first_index % 8 == 0) && gradient.has(row.gradient_format) &&
           master.has(row.master_format) && row.low_kind == low_part::none &&
           row.gradient_scale == nullptr && (States < 1 || states.has(row.state_formats[0])) &&
           (States < 2 || states.has(row.state_formats[1]));
  }
  /// The formats of a tensor that has them.
  [[nodiscard]] __device__ __forceinline__ row_formats of(const numerics::update_row& row) const {
    return {weights.known(row.weights_format),
            gradient.known(row.gradient_format),
            master.known(row.master_format),
            {states.known(row.state_formats[0]), states.known(row.state_formats[1])},
            low_part::none,
            false};
  }
};

/// Updates a chunk if it has the formats F.
template <common_formats F, class Formula>
__device__ __forceinline__ bool steps_if_common(const chunk_task& task) {
  if (!F.template has<Formula::states>(task)) return false;
  step_chunk<Formula, stored_by_instructions, F.elements, true>(task, F.of(task.row));
  return true;
}

/// Updates a chunk if its formats have code of their own.
template <class Formula>
__device__ __forceinline__ bool steps_common_formats(const chunk_task& task) {
  using enum stored_format;
  constexpr either_format is_fp32 = {fp32, fp32}, is_none = {none, none};
  constexpr either_format is_half = {bf16_nearest, fp16_nearest};
  constexpr either_format is_bf16 = {bf16_nearest, bf16_stochastic};
  constexpr either_format is_nearest = {bf16_nearest, bf16_nearest};
  constexpr either_format is_e4m3 = {e4m3_scaled, e4m3_scaled};
  return steps_if_common<common_formats{is_fp32, is_fp32, is_none, is_fp32, 4}, Formula>(task) ||
         steps_if_common<common_formats{is_half, is_half, is_fp32, is_fp32, 4}, Formula>(task) ||
         steps_if_common<common_formats{is_bf16, is_nearest, is_none, is_bf16, 8}, Formula>(task) ||
         steps_if_common<common_formats{is_bf16, is_nearest, is_none, is_e4m3, 8}, Formula>(task);
}

/// Updates a chunk of a tensor of any formats. All threads of a block must call. Inlined, this code
/// would take registers from the code of the common formats, whose values would spill to memory.
template <class Formula>
__device__ __noinline__ void step_any_formats(const update_launch& call) {
  const chunk_task task(call);
  step_chunk<Formula, stored_of_any_format<stored_by_instructions>, 8, false>(task,
                                                                              formats_of(task.row));
}

/// Updates the tensors whose groups have this formula, by the GPU's instructions. One block per
/// chunk.
template <class Formula>
__global__ void __launch_bounds__(update_threads, update_residents)
    native_update_kernel(const __grid_constant__ update_launch call) {
  chunk_task task(call);
  const group_step group = *task.group;  // a copy: read once, not after each store
  if (!has_work<Formula>(group)) return;
  task.group = &group;
  if (!steps_common_formats<Formula>(task)) step_any_formats<Formula>(call);
}

}  // namespace samebits::cuda
