// Binary32 quotients and products of positive numbers from 64-bit integers: quick enough for the
// scales of all 2^31 positive amaxes.
#pragma once

#include <cstdint>

namespace samebits::oracle {

/// RN(a / b) by one integer division with remainder. a and b are positive finite binary32 codes.
std::uint32_t integer_quotient(std::uint32_t a, std::uint32_t b);

/// RN(a * b). a and b are positive finite binary32 codes.
std::uint32_t integer_product(std::uint32_t a, std::uint32_t b);

}  // namespace samebits::oracle
