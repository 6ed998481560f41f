// Functions of the rule `exact`: in integers, by binary64 instructions, and by approximations.
#include "backends/cuda/functions/exact/approximation_kernel.cuh"
#include "backends/cuda/functions/exact/exact_kernel.cuh"
#include "backends/cuda/functions/exact/real_word.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "numerics/arithmetic/binary64.hpp"

namespace samebits::cuda {
namespace {

namespace real = numerics::real;

/// Values of exact_op in integers: one kernel for all functions.
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

/// Values of exact_op by the GPU's binary64 instructions.
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

/// Whether a call is one row of contiguous, aligned elements, to nearest even into 32 or 16 bits.
bool is_approximated(const backends::evaluate_call& call, const function_task& t) {
  return call.grad.data == nullptr && call.rule == cast_rule{} && t.rows == 1 && t.in.vectors &&
         t.out.vectors && t.out.bytes >= 2;
}

/// Enqueues a call by approximations with a rounding test: a faster kernel with the same results.
/// Returns false if it does not serve the call.
bool launch_approximation(const backends::evaluate_call& call, void* stream) {
  const function_task t = function_task_of(call, exact_elements);
  if (!is_approximated(call, t)) return false;
  return real::with_function(call.exact, [&]<real::exact_function F>() {
    if constexpr (has_approximation<F>) {
      launch_kernel("cuda-native: evaluate", approximation_kernel<F>, function_blocks(t),
                    block_threads, 0, static_cast<cudaStream_t>(stream), t.in, t.out, t.cols);
    }
    return has_approximation<F>;
  });
}

}  // namespace

void launch_exact_definition(const backends::evaluate_call& call, void* stream) {
  launch_exact("cuda-emulated: evaluate", definition_values{call.exact}, call, stream);
}

void launch_exact_native(const backends::evaluate_call& call, void* stream) {
  if (launch_approximation(call, stream)) return;
  real::with_function(call.exact, [&]<real::exact_function F>() {
    launch_exact("cuda-native: evaluate", native_values<F>{}, call, stream);
  });
}

}  // namespace samebits::cuda
