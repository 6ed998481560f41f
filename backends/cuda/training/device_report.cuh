// Writes step reports from a kernel into a ring of slots in mapped host memory. The host reads the
// ring with report_reader (backends/loss_scaler/report_ring.hpp) while the device continues.
#pragma once

#include <cstdint>

#include "numerics/loss_scale/report_ring.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::device {

/// Loads, stores and a fence on words that host and device share. The host branches only let the
/// code compile; the host never runs them.
struct system_words {
  SAMEBITS_INLINE static std::uint64_t load(const std::uint64_t& word) {
    std::uint64_t value = 0;
#if defined(__CUDA_ARCH__)
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(&word) : "memory");
#else
    value = word;
#endif
    return value;
  }
  SAMEBITS_INLINE static void store(std::uint64_t& word, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(&word), "l"(value) : "memory");
#else
    word = value;
#endif
  }
  SAMEBITS_INLINE static void fence() {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
#endif
  }
};

/// Writes report number report.step into a ring of `capacity` slots. The calling thread must be the
/// ring's only writer.
__device__ __forceinline__ void put_report(numerics::report_slot* ring, std::uint64_t capacity,
                                           const step_report& report) {
  numerics::put_report<system_words>(ring, capacity, report);
}

}  // namespace samebits::device
