// What a quantization of a matrix is reported to have done; the contract is silent beyond amax (§6)
// and the sums, so every field says its definition.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/format_table.hpp"

namespace samebits::oracle {

/// Over all elements of a matrix, none of the padding. Magnitudes are binary32 codes.
struct quantize_statistics {
  std::uint32_t amax = 0;         ///< §6: any NaN gives 7FFFFFFF, else any Inf 7F800000; empty 0
  std::uint32_t min_nonzero = 0;  ///< smallest magnitude of the finite non-zero elements; 0 if none
  std::uint64_t zeros = 0;        ///< elements ±0
  std::uint64_t underflowed = 0;  ///< finite non-zero elements of code ±0
  /// Finite elements whose y, rounded with unbounded exponent, exceeds max finite (§4), whatever
  /// code that gives.
  std::uint64_t overflowed = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  /// fp64 codes of the sums of RN64(d·d), d = RN64(x − x̂), and of RN64(x·x), with x̂ the binary32
  /// dequantized value, in §6's tree over the matrix in row-major order. An element whose x or x̂ is
  /// not finite is the input +0 in both.
  std::uint64_t error_energy = 0;
  std::uint64_t signal_energy = 0;

  friend bool operator==(const quantize_statistics&, const quantize_statistics&) = default;
};

/// One element: all binary32 codes but the last.
struct quantized_element {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t dequantized = 0;
  std::uint8_t code = 0;
  bool overflowed = false;  ///< y finite or not, see quantize_statistics::overflowed
};

/// The statistics of the elements in row-major order of the source.
quantize_statistics statistics_of(const format& to, const std::vector<quantized_element>& elements);

}  // namespace samebits::oracle
