// The build has no header of cuBLASLt 12.9 or later.
#include "backends/cuda/matmul/plan.hpp"
#include "samebits/error.hpp"

namespace samebits::cuda {

std::shared_ptr<const backends::device_product> plan_product(const backends::matmul_call&, void*) {
  throw unsupported("matmul_plan: this build has no cublasLt.h of CUDA 12.9 or later");
}

}  // namespace samebits::cuda
