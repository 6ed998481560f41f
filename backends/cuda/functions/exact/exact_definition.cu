// Functions of the rule `exact` in integers: one kernel for all functions.
#include "backends/cuda/functions/exact/exact_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "numerics/arithmetic/binary64.hpp"

namespace samebits::cuda {
namespace {

namespace real = numerics::real;

/// Values of exact_op.
struct definition_values {
  real::exact_function f;

  /// A call, so that the compiler sees the functions once, not for each element of a thread.
  __device__ __noinline__ std::uint64_t apply(std::uint32_t x) const {
    return real::value_of_function(f, numerics::binary64::widen(x));
  }
  __device__ __forceinline__ std::uint64_t product(std::uint32_t grad, std::uint64_t y) const {
    const std::uint64_t d =
        real::destination_code(spec_of(format_id::fp32), cast_rule{}, y, std::uint64_t{0});
    return real::gradient_product(numerics::binary64::widen(grad),
                                  numerics::binary64::widen(static_cast<std::uint32_t>(d)));
  }
};

}  // namespace

void launch_exact_definition(const backends::evaluate_call& call, void* stream) {
  launch_exact("cuda-emulated: evaluate", definition_values{call.exact}, call, stream);
}

}  // namespace samebits::cuda
