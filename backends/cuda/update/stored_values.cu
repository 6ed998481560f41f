// store() and load() on CUDA.
#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/update/update.hpp"
#include "backends/cuda/update/update_kernel.cuh"
#include "numerics/tensor_list/list.hpp"

namespace samebits::cuda {
namespace {

/// Stores the weights of one row as those of the other. One block per chunk.
template <class Arithmetic>
__global__ void __launch_bounds__(update_threads)
    store_kernel(const __grid_constant__ backends::store_call call) {
  using vector = update_vector<any_stored<Arithmetic>, 8, false>;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * numerics::chunk_elements;
  const auto count =
      static_cast<int>(min(call.to.count - first, std::int64_t{numerics::chunk_elements}));
  const numerics::philox_keys keys = numerics::philox_keys_of(call.seed);
  const bool aligned = is_aligned(call.from) && is_aligned(call.to);
#pragma unroll 1
  for (int turn = 0; turn < count; turn += update_threads * 8) {
    const int at = turn + static_cast<int>(threadIdx.x) * 8;
    const int elements = min(max(count - at, 0), 8);
    // All lanes of a warp take the same branch, as for_each_vector() says.
    const bool vectors = aligned && __all_sync(all_lanes, elements == 8);
    // random_stream_number() uses the lower 32 bits of the step.
    const vector_place place = {first + at, elements, vectors, keys, call.stream};
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
  backends::store_call launch = call;
  // A vector reads the scales of masters alone.
  if (call.from.low_kind == low_part::none) {
    launch.from.master = call.from.weights;
    launch.from.master_format = call.from.weights_format;
  }
  // random_stream_number() makes the stream's number again.
  launch.to.stream = static_cast<std::uint32_t>(call.stream >> 32) & 0xFFFFFFu;
  void (*kernel)(backends::store_call) = store_kernel<update_hardware>;
  if (by == arithmetic::by_definition) kernel = store_kernel<numerics::update_by_definition>;
  launch_kernel("store kernel", kernel, static_cast<unsigned>(numerics::chunks_of(call.to.count)),
                update_threads, 0, static_cast<cudaStream_t>(stream), launch);
}

}  // namespace samebits::cuda
