// fp32 to e4m3, saturating, written for speed; and a variant with a planted error.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

enum class ties { to_even, away };

/// Returns the e4m3 code of x, rounded to nearest; magnitudes beyond 448 saturate. With ties::away
/// every second tie is one ulp too large: an error that tests with random floats hardly ever find.
template <ties Ties>
HOST_DEVICE inline std::uint8_t to_e4m3(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0x7F;         // NaN: canonical, positive
  if (magnitude > 0x43E00000) return sign | 0x7E;  // beyond 448
  if (magnitude < 0x3C800000) {                    // below 2^-6 the codes are multiples of 2^-9
    const float scaled = __builtin_bit_cast(float, magnitude) * 512.0f;  // exact
    auto code = static_cast<std::uint8_t>(scaled);
    const float rest = scaled - code;
    const bool odd = code % 2 == 1;
    if (rest > 0.5f || (rest == 0.5f && (Ties == ties::away || odd))) ++code;
    return sign | code;
  }
  const std::uint32_t last = magnitude >> 20 & 1;
  const std::uint32_t half = Ties == ties::away ? 0x80000 : 0x7FFFF + last;
  return sign | static_cast<std::uint8_t>((magnitude + half - (std::uint32_t{120} << 23)) >> 20);
}
