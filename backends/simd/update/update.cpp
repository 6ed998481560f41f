// Optimizer steps on the SIMD backends. Compiled without instruction set flags.
#include "backends/simd/update/update.hpp"

#include "backends/reference/optimizer.hpp"
#include "numerics/update/stored.hpp"

namespace samebits::backends {

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

const update_kernels& avx2_update_kernels() {
  const bool has_fma = __builtin_cpu_supports("fma") != 0;  // AVX2 does not include them
  return has_fma ? avx2_update_lanes : reference_update_kernels();
}

const update_kernels& avx512_update_kernels() { return avx512_update_lanes; }

}  // namespace samebits::backends
