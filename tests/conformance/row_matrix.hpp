// Matrices of 21 rows for tests of functions of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/view.hpp"

namespace samebits::support {

namespace torch = numerics::torch_2_11;
using words = std::vector<std::uint32_t>;

inline constexpr std::int64_t rows = 21;

/// A matrix of codes with gaps between elements and rows.
struct matrix {
  format_id format;
  std::int64_t cols;
  std::int64_t step;
  std::vector<std::uint8_t> bytes;

  matrix(format_id f, std::int64_t n, std::int64_t col_stride)
      : format(f),
        cols(n),
        step(col_stride),
        bytes(static_cast<std::size_t>(rows * (n * col_stride + 3)) * size(), 0xA5) {}

  [[nodiscard]] std::size_t size() const { return format == format_id::fp32 ? 4 : 2; }
  [[nodiscard]] matrix_view view(std::int64_t count = rows) {
    return {bytes.data(), format, count, cols, cols * step + 3, step};
  }
  std::uint8_t* at(std::int64_t r, std::int64_t c) {
    return bytes.data() + (r * (cols * step + 3) + c * step) * static_cast<std::int64_t>(size());
  }
  void set(std::int64_t r, std::int64_t c, std::uint32_t value) {
    const std::uint32_t code = torch::code_of(format, value);
    std::memcpy(at(r, c), &code, size());
  }
  std::uint32_t get(std::int64_t r, std::int64_t c) {
    std::uint32_t code = 0;
    std::memcpy(&code, at(r, c), size());
    return torch::value_of(format, code);
  }
  words row(std::int64_t r) {
    words x;
    for (std::int64_t c = 0; c < cols; ++c) x.push_back(get(r, c));
    return x;
  }
};

/// Pseudo-random numbers between -8 and 8.
inline matrix random_matrix(format_id format, std::int64_t cols, std::int64_t step,
                            std::uint64_t seed) {
  matrix m(format, cols, step);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const auto exponent = static_cast<std::uint32_t>(120 + (seed >> 40) % 10);
      const auto sign_and_fraction = static_cast<std::uint32_t>(seed >> 32) & 0x807FFFFF;
      m.set(r, c, sign_and_fraction | exponent << 23);
    }
  }
  return m;
}

}  // namespace samebits::support
