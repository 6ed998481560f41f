// Elementary steps of contract §6: one IEEE 754 operation on two codes, rounded to nearest even.
#pragma once

#include <cstdint>

#include "oracle/format_table.hpp"

namespace samebits::oracle {

// Operands and result are codes of one format with Inf and NaN: here fp32 or fp64. The exact result
// of rational arithmetic is rounded once (overflow::ieee); every NaN returned is the canonical one.

std::uint64_t subtract(const format& f, std::uint64_t a, std::uint64_t b);
std::uint64_t add(const format& f, std::uint64_t a, std::uint64_t b);
std::uint64_t multiply(const format& f, std::uint64_t a, std::uint64_t b);
std::uint64_t divide(const format& f, std::uint64_t a, std::uint64_t b);

/// The same on binary32.
std::uint32_t multiply32(std::uint32_t a, std::uint32_t b);
std::uint32_t divide32(std::uint32_t a, std::uint32_t b);

}  // namespace samebits::oracle
