// Vendor: NVIDIA's host conversions as array loops, the peer on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samebits/core/format.hpp"

namespace samebits::bench {

/// A loop over the vendor's host function for fp32 into `to`, nearest even and saturating (fp16 and
/// bf16: to Inf); null where it has none or the build has no CUDA headers.
using vendor_loop = void (*)(const float* in, std::byte* out, std::int64_t count);
vendor_loop vendor_conversion(format_id to);

}  // namespace samebits::bench
