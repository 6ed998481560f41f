// Functions that both SIMD backends share. Compiled without instruction set flags.
#include "backends/simd/simd.hpp"

#include "backends/reference/reference.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "numerics/update/stored.hpp"

namespace samebits::backends {

/// Requires a processor with fused multiply-adds.
void fma_probes(probe_report& report);

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

bool has_fused_multiply_adds() { return __builtin_cpu_supports("fma") != 0; }

void in_ieee_state(const std::function<void()>& work) {
  const ieee_control_register ieee;
  work();
}

void run_all_probes(void (*own)(probe_report&), probe_report& report) {
  own(report);
  if (__builtin_cpu_supports("avx2") == 0 || !has_fused_multiply_adds()) return;
  probe_report more{};
  fma_probes(more);
  for (int i = 0; i < probe_count; ++i) {
    if (report.of[i].bits == 0) report.of[i] = more.of[i];
  }
}

void convert_by_lanes(const lane_kernels& by, const convert_call& call, element_range range) {
  // fp64 needs 64-bit words, which the SIMD lanes do not have.
  const bool wide = call.in.format == format_id::fp64 || call.out.format == format_id::fp64;
  (wide ? reference_convert : by.convert)(call, range);
}

void convert_words(void (*convert)(const convert_call&, element_range), const stored_part& part,
                   const std::uint32_t* words) {
  std::byte* const codes = part.array.codes + part.first * code_bytes(part.format);
  convert_call call{view_of_codes(format_id::fp32, static_cast<const void*>(words), 1, part.count),
                    view_of_codes(numerics::codes_format(part.format), codes, 1, part.count),
                    numerics::stored_rule(part.format), part.random};
  call.random.bits = numerics::update_random_bits;
  call.random.offset += static_cast<std::uint64_t>(part.first);
  convert(call, {0, part.count});
}

}  // namespace samebits::backends
