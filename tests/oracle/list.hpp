// Operations over tensors of a list: statistics of one tensor, and one element of each operation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "oracle/format_table.hpp"

namespace samebits::oracle {

/// What a pass over a tensor's codes finds.
struct inspected {
  std::uint64_t nan = 0, inf = 0, zeros = 0, subnormals = 0;
  std::uint32_t amax = 0;                      ///< fp32 code; 7FFFFFFF if an element is NaN
  std::uint64_t squares = 0;                   ///< fp64 code
  std::array<std::uint64_t, 256> exponents{};  ///< by the exponent field of the value in fp32
};

/// Codes in index order; every one, also NaN and Inf, is an input of the sum of squares.
inspected inspect(const format& f, const std::vector<std::uint64_t>& codes);

// Factors are fp32 codes; the steps are fp32 operations, the last conversion nearest even.

/// RN(x * factor).
std::uint64_t scaled(const format& f, std::uint64_t x, std::uint32_t factor);
/// RN(acc + RN(x * scale)).
std::uint64_t accumulated(const format& acc_format, std::uint64_t acc, const format& x_format,
                          std::uint64_t x, std::uint32_t scale);
/// RN(RN(a * x) + RN(b * y)).
std::uint64_t combined(const format& out, std::uint32_t a, const format& x_format, std::uint64_t x,
                       std::uint32_t b, const format& y_format, std::uint64_t y);

/// min(1, RN(max_norm / RN(norm + 1e-6))) of fp64 codes, as an fp32 code.
std::uint32_t clip_factor(std::uint64_t norm, std::uint64_t max_norm);

}  // namespace samebits::oracle
