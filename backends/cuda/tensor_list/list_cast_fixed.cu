// Conversion of lists of tensors by the definition, with formats and rounding mode as constants.
#include <cuda_runtime.h>

#include <type_traits>

#include "backends/cuda/tensor_list/list_cast.cuh"

namespace samebits::cuda {

bool launch_fixed_cast(const conversion& what, const cast_lists& lists, cudaStream_t stream) {
  return with_fixed_op(what, [&](const auto& op) {
    launch_cast(cast_alike_kernel<std::decay_t<decltype(op)>>, lists, stream, op);
    return true;
  });
}

}  // namespace samebits::cuda
