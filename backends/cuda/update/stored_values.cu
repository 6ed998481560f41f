// store() and load() on CUDA.
#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/update/update.hpp"
#include "backends/cuda/update/update_kernel.cuh"
#include "numerics/tensor_list/list.hpp"

namespace samebits::cuda {
namespace {

/// A store_call as a kernel argument.
struct store_launch {
  numerics::update_row from;
  numerics::update_row to;
  numerics::philox_keys keys;
  std::uint64_t stream;  ///< number of the random stream
};

/// Stores the weights of one row as those of the other. One block per chunk.
template <class Arithmetic>
__global__ void __launch_bounds__(update_threads)
    store_kernel(const __grid_constant__ store_launch call) {
  using vector = update_vector<any_stored<Arithmetic>, 8, false>;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * numerics::chunk_elements;
  const std::int64_t left = call.to.count - first;
  group_step group = {};
  group.step = call.stream;  // its lower 32 bits are used
  const chunk_task task = {call.from,
                           group,
                           call.keys,
                           {0, first, min(left, std::int64_t{numerics::chunk_elements})},
                           is_aligned(call.from) && is_aligned(call.to)};
#pragma unroll 1
  for (int turn = 0; turn < task.chunk.count; turn += update_threads * 8) {
    const vector_place place = place_at<8, false>(task, turn);
    vector from(call.from, formats_of(call.from), place);
    vector to(call.to, formats_of(call.to), place);
    from.load_weights();
    from.decode_weights();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      to.weights.w[k] = numerics::update_by_definition::canonical(from.weights.w[k]);
    }
    to.write_weights(static_cast<stream_purpose>(call.stream >> 56));
  }
}

}  // namespace

void enqueue_store(const backends::store_call& call, arithmetic by, void* stream) {
  store_launch launch = {call.from, call.to, numerics::philox_keys_of(call.seed), call.stream};
  // A vector reads the scales of masters alone.
  if (call.from.low_kind == low_part::none) {
    launch.from.master = call.from.weights;
    launch.from.master_format = call.from.weights_format;
  }
  // random_stream_number() makes the stream's number again.
  launch.to.stream = static_cast<std::uint32_t>(call.stream >> 32) & 0xFFFFFFu;
  void (*kernel)(store_launch) = store_kernel<update_hardware>;
  if (by == arithmetic::by_definition) kernel = store_kernel<numerics::update_by_definition>;
  launch_kernel("store kernel", kernel, static_cast<unsigned>(numerics::chunks_of(call.to.count)),
                update_threads, 0, static_cast<cudaStream_t>(stream), launch);
}

}  // namespace samebits::cuda
