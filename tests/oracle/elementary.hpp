// Elementary steps of contract §6: one IEEE 754 operation on codes, rounded to nearest even.
#pragma once

#include <cstdint>

#include "oracle/format_table.hpp"

namespace samebits::oracle {

inline const format& fp32() { return format_named("fp32"); }
inline const format& fp64() { return format_named("fp64"); }

// Operands and result are codes of one format with Inf and NaN. The result is that of arithmetic()
// (overflow::ieee); every NaN returned is the canonical one.

std::uint64_t subtract(const format& f, std::uint64_t a, std::uint64_t b);
std::uint64_t add(const format& f, std::uint64_t a, std::uint64_t b);
std::uint64_t multiply(const format& f, std::uint64_t a, std::uint64_t b);
std::uint64_t divide(const format& f, std::uint64_t a, std::uint64_t b);
/// a * b + c
std::uint64_t fused(const format& f, std::uint64_t a, std::uint64_t b, std::uint64_t c);
std::uint64_t root(const format& f, std::uint64_t a);

/// The same on binary32.
std::uint32_t add32(std::uint32_t a, std::uint32_t b);
std::uint32_t subtract32(std::uint32_t a, std::uint32_t b);
std::uint32_t multiply32(std::uint32_t a, std::uint32_t b);
std::uint32_t divide32(std::uint32_t a, std::uint32_t b);

}  // namespace samebits::oracle
