// The suites of conversion, arithmetic and quantization over the backends that take host memory, and
// what the control register of the calling thread may not change.
#include "engine/suites/compute_suite.hpp"
#include "engine/suites/convert_suite.hpp"
#include "engine/suites/quantize_suite.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace samebits::support {

INSTANTIATE_TEST_SUITE_P(Host, ConvertSuite,
                         ::testing::ValuesIn(convert_targets(host_suite_targets())),
                         name_of_target);
INSTANTIATE_TEST_SUITE_P(Host, ArrayArithmeticSuite, ::testing::ValuesIn(host_suite_targets()),
                         name_of_suite_target);
INSTANTIATE_TEST_SUITE_P(Host, QuantizeSuite, ::testing::ValuesIn(host_suite_targets()),
                         name_of_suite_target);

#if defined(__x86_64__)
// Arithmetic has no self-test to ask: integers do not care, and kernels set the register.
TEST(ComputeControlRegister, IsNeitherReadNorChanged) {
  constexpr unsigned usual = 0x1F80;
  for (const suite_target& tested : host_suite_targets()) {
    const std::unique_ptr<array_target> target = tested.make();
    for (const unsigned spoiled :
         {0x8040u, 0x2000u, 0x4000u, 0x6000u}) {  // FTZ and DAZ; directions
      function_target<array_arithmetic_case> in_spoiled_register(
          tested.name + " with another register",
          [&](const array_arithmetic_case& c, const call_site& site) {
            _mm_setcsr(usual | spoiled);
            const returned_values returned = computations().call(c, {*target, site.views});
            const unsigned after = _mm_getcsr();
            _mm_setcsr(usual);
            EXPECT_EQ(after & ~0x3Fu, usual | spoiled) << tested.name;  // but for exception flags
            return returned;
          });
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
