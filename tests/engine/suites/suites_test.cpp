// The suites of conversion, arithmetic and quantization over the backends that take host memory, and
// what the control register of the calling thread may not change.
#include "engine/suites/compute_suite.hpp"
#include "engine/suites/convert_suite.hpp"
#include "engine/suites/quantize_suite.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace samebits::support {

INSTANTIATE_TEST_SUITE_P(Host, ConvertSuite, ::testing::ValuesIn(host_targets()), name_of_target);
INSTANTIATE_TEST_SUITE_P(Host, ArrayArithmeticSuite, ::testing::ValuesIn(host_array_arithmetic()),
                         name_of_backend);
INSTANTIATE_TEST_SUITE_P(Host, QuantizeSuite, ::testing::ValuesIn(host_quantizers()),
                         name_of_quantizer);

#if defined(__x86_64__)
// Arithmetic has no self-test to ask: integers do not care, and kernels set the register.
TEST(ComputeControlRegister, IsNeitherReadNorChanged) {
  constexpr unsigned usual = 0x1F80;
  for (const array_arithmetic_target& target : host_array_arithmetic()) {
    for (const unsigned spoiled :
         {0x8040u, 0x2000u, 0x4000u, 0x6000u}) {  // FTZ and DAZ; directions
      const array_arithmetic_target in_spoiled_register = {
          target.name + " with another register",
          [&](operation op, const array_operands& in, const matrix_view& out,
              const compute_options& options, flags_asked asked, const flags_view& each,
              int threads) {
            _mm_setcsr(usual | spoiled);
            const flags raised = target.compute(op, in, out, options, asked, each, threads);
            const unsigned after = _mm_getcsr();
            _mm_setcsr(usual);
            EXPECT_EQ(after & ~0x3Fu, usual | spoiled) << target.name;  // but for exception flags
            return raised;
          }};
      std::vector<array_arithmetic_case> cases;
      for (const format_id f : arithmetic_formats) {
        for (const operation op :
             {operation::add, operation::mul, operation::div, operation::sqrt, operation::fma}) {
          cases.push_back(dense_case(op, {f, f, f}, f, 1, 1021));
        }
      }
      expect_computes(in_spoiled_register, std::move(cases), 1, 1024, *host_target("reference"));
    }
  }
}
#endif

}  // namespace samebits::support
