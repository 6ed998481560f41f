// Functions of the rule `exact` by the GPU's binary64 instructions: chooses the kernel of a call.
#include "backends/cuda/functions/exact/exact_kernel.cuh"
#include "backends/cuda/functions/exact/real_word.cuh"
#include "backends/cuda/functions/functions.hpp"

namespace samebits::cuda {
namespace {

namespace real = numerics::real;

/// Values of exact_op.
template <real::exact_function F>
struct native_values {
  __device__ __forceinline__ static real_word widened(std::uint32_t x) {
    return real_word(static_cast<double>(__uint_as_float(x)));
  }
  __device__ __forceinline__ std::uint64_t apply(std::uint32_t x) const {
    return real::value_at<F>(widened(x)).bits;
  }
  __device__ __forceinline__ std::uint64_t product(std::uint32_t grad, std::uint64_t y) const {
    const real_word d = widened(__float_as_uint(__double2float_rn(real_word(y).number())));
    return real::gradient_product(widened(grad), d).bits;
  }
};

}  // namespace

void launch_exact_native(const backends::evaluate_call& call, void* stream) {
  if (launch_approximation(call, stream)) return;
  real::with_function(call.exact, [&]<real::exact_function F>() {
    launch_exact("cuda-native: evaluate", native_values<F>{}, call, stream);
  });
}

}  // namespace samebits::cuda
