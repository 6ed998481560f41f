// The SIMD backends' entries in the registry. Compiled without instruction set flags.
#include "backends/simd/simd.hpp"

#include "backends/reference/reference.hpp"
#include "backends/self_test/self_test.hpp"

namespace samebits::backends {
namespace {

std::string why_not_avx2() {
  return __builtin_cpu_supports("avx2") != 0 ? "" : "the processor lacks AVX2";
}

std::string why_not_avx512() {
  const bool all =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512cd") != 0;
  return all ? "" : "the processor lacks AVX-512 F/BW/VL/DQ/CD";
}

/// fp64 needs 64-bit words, which the SIMD lanes do not have: the reference loops convert fp64.
template <void (*Convert)(const convert_call&, element_range)>
void convert_or_reference(const convert_call& call, element_range range) {
  const bool wide = call.in.format == format_id::fp64 || call.out.format == format_id::fp64;
  (wide ? reference_convert : Convert)(call, range);
}

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): decision 0009
constinit self_test_entry avx2_self_test = {avx2_probes};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): decision 0009
constinit self_test_entry avx512_self_test = {avx512_probes};

}  // namespace

const backend avx2 = {
    .name = "avx2",
    .description = "x86-64 with AVX2, 8 lanes",
    .space = memory_space::host,
    .why_unsupported = why_not_avx2,
    .has = has_everything,
    .convert = convert_or_reference<avx2_convert>,
    .self_test = &avx2_self_test,
    .quantizes = &avx2_quantizer,
    .computes = &avx2_calculator,
    .plans = &avx2_plan_kernels,
    .reduces = &host_reducer,
    .multiplies = &avx2_multiplier,
};

const backend avx512 = {
    .name = "avx512",
    .description = "x86-64 with AVX-512, 16 lanes",
    .space = memory_space::host,
    .why_unsupported = why_not_avx512,
    .has = has_everything,
    .convert = convert_or_reference<avx512_convert>,
    .self_test = &avx512_self_test,
    .quantizes = &avx512_quantizer,
    .computes = &avx512_calculator,
    .plans = &avx512_plan_kernels,
    .reduces = &host_reducer,
    .multiplies = &avx512_multiplier,
};

}  // namespace samebits::backends
