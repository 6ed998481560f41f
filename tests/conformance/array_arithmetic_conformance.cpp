// The conformance suite of array arithmetic over the backends that take host memory, and what the
// control register of the calling thread may not change.
#include "conformance/array_arithmetic_suite.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace samebits::support {

INSTANTIATE_TEST_SUITE_P(Host, ArrayArithmeticSuite, ::testing::ValuesIn(host_array_arithmetic()),
                         name_of_backend);

#if defined(__x86_64__)
// Arithmetic has no self-test to ask: integers do not care, and kernels set the register.
TEST(ComputeControlRegister, IsNeitherReadNorChanged) {
  constexpr unsigned usual = 0x1F80;
  for (const array_arithmetic_target& target : host_array_arithmetic()) {
    for (const unsigned spoiled :
         {0x8040u, 0x2000u, 0x4000u, 0x6000u}) {  // FTZ and DAZ; directions
      for (const format_id f : arithmetic_formats) {
        for (const operation op :
             {operation::add, operation::mul, operation::div, operation::sqrt, operation::fma}) {
          const array_arithmetic_case c = dense_case(op, {f, f, f}, f, 1, 1021);
          compute_memory expected(c);
          computing_on("reference")(op, operands_of(expected), expected.out.view(), {},
                                    flags_asked::none, {}, 1);
          compute_memory m(c);
          _mm_setcsr(usual | spoiled);
          target.compute(op, operands_of(m), m.out.view(), {}, flags_asked::none, {}, 1);
          const unsigned after = _mm_getcsr();
          _mm_setcsr(usual);
          ASSERT_EQ(after & ~0x3Fu, usual | spoiled) << target.name;  // but for exception flags
          ASSERT_EQ(m.out.bytes(), expected.out.bytes()) << target.name << ": " << c;
        }
      }
    }
  }
}
#endif

}  // namespace samebits::support
