// Step reports from a kernel: a ring in memory that the host reads while the device goes on. The
// host reads with report_reader (backends/loss_scaler/report_ring.hpp).
#pragma once

#include <cstdint>

#include "numerics/loss_scale/report_ring.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::device {

/// Words of memory that the host sees, too; what is for the host here is never called there.
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

/// Leaves report number report.step in a ring of `capacity` slots, of which it is the one writer.
__device__ __forceinline__ void put_report(numerics::report_slot* ring, std::uint64_t capacity,
                                           const step_report& report) {
  numerics::put_report<system_words>(ring, capacity, report);
}

}  // namespace samebits::device
