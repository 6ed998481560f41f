// The function units of the GPU against their model: each instruction's results, as a kernel reads
// them through PTX, equal those of numerics/hardware/function_units/ on the host and in the kernel.
#include <gtest/gtest.h>

#include <cstdint>

#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "numerics/hardware/function_units/sin_unit.hpp"
#include "numerics/hardware/function_units/sqrt.hpp"
#include "numerics/hardware/function_units/tanh_unit.hpp"
#include "samebits/core/config.hpp"
#include "tests/device/function_comparison.cuh"

namespace samebits {
namespace {

namespace hopper = numerics::hopper;

// One struct for each instruction, as function_comparison.cuh describes.
#define SAMEBITS_TEST_INSTRUCTION(function, instruction)                                    \
  struct function {                                                                         \
    static constexpr const char* text = instruction;                                        \
    SAMEBITS_HD static std::uint32_t model(std::uint32_t x) { return hopper::function(x); } \
    __device__ static std::uint32_t hardware(std::uint32_t x) {                             \
      float y = 0;                                                                          \
      asm volatile(instruction " %0, %1;" : "=f"(y) : "f"(__uint_as_float(x)));             \
      return __float_as_uint(y);                                                            \
    }                                                                                       \
  }
SAMEBITS_TEST_INSTRUCTION(ex2_approx_ftz, "ex2.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(ex2_approx, "ex2.approx.f32");
SAMEBITS_TEST_INSTRUCTION(lg2_approx_ftz, "lg2.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(lg2_approx, "lg2.approx.f32");
SAMEBITS_TEST_INSTRUCTION(rcp_approx_ftz, "rcp.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(rcp_approx, "rcp.approx.f32");
SAMEBITS_TEST_INSTRUCTION(rsqrt_approx_ftz, "rsqrt.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(rsqrt_approx, "rsqrt.approx.f32");
SAMEBITS_TEST_INSTRUCTION(sqrt_approx_ftz, "sqrt.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(sqrt_approx, "sqrt.approx.f32");
SAMEBITS_TEST_INSTRUCTION(sin_approx_ftz, "sin.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(cos_approx_ftz, "cos.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(tanh_approx, "tanh.approx.f32");
#undef SAMEBITS_TEST_INSTRUCTION

template <class Function>
class FunctionUnits : public testing::Test {};

using instructions =
    testing::Types<ex2_approx_ftz, ex2_approx, lg2_approx_ftz, lg2_approx, rcp_approx_ftz,
                   rcp_approx, rsqrt_approx_ftz, rsqrt_approx, sqrt_approx_ftz, sqrt_approx,
                   sin_approx_ftz, cos_approx_ftz, tanh_approx>;

TYPED_TEST_SUITE(FunctionUnits, instructions, function_names);

TYPED_TEST(FunctionUnits, ReturnTheModelsBits) { expect_the_models_bits<TypeParam>(1); }

}  // namespace
}  // namespace samebits
