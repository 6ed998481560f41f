// Shared by the tests of the C interface: arrays in C, inputs, and checks of a status.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "samebits/c/samebits.h"
#include "samebits/samebits.hpp"

namespace samebits::in_c {

/// Returns the C array of a C++ view.
inline samebits_array array(const const_matrix_view& v) {
  return {const_cast<void*>(v.data),
          v.rows,
          v.cols,
          v.row_stride,
          v.col_stride,
          name(v.format).data(),
          static_cast<int32_t>(v.space)};
}

/// A dense matrix of codes of one format.
struct matrix {
  matrix(format_id f, std::int64_t r, std::int64_t c)
      : format(f), rows(r), cols(c), bytes(static_cast<std::size_t>(r * c * storage_bytes(f))) {}

  [[nodiscard]] matrix_view cpp() { return view_of_codes(format, bytes.data(), rows, cols); }
  [[nodiscard]] samebits_array c() { return array(cpp()); }

  format_id format;
  std::int64_t rows, cols;
  std::vector<std::uint8_t> bytes;
};

/// Returns a matrix of random bits: NaN, Inf and subnormals are among its elements.
inline matrix random_matrix(format_id f, std::int64_t rows, std::int64_t cols,
                            std::uint64_t seed = 1) {
  matrix m(f, rows, cols);
  for (std::size_t i = 0; i < m.bytes.size(); ++i) {
    m.bytes[i] = static_cast<std::uint8_t>(random_word(seed, 0, i, 8));
  }
  return m;
}

/// Returns a matrix of finite numbers of magnitudes near 1.
inline matrix number_matrix(format_id f, std::int64_t rows, std::int64_t cols,
                            std::uint64_t seed = 1) {
  std::vector<float> numbers(static_cast<std::size_t>(rows * cols));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(random_word(seed, 1, i, 16)) / 16384.0f - 2.0f;
  }
  matrix m(f, rows, cols);
  convert(view_of(numbers.data(), rows, cols), m.cpp());
  return m;
}

#define EXPECT_OK(call) EXPECT_EQ(call, SAMEBITS_OK) << samebits_last_error()
#define ASSERT_OK(call) ASSERT_EQ(call, SAMEBITS_OK) << samebits_last_error()

/// Expects a call to return an error with this message.
#define EXPECT_REFUSED(call, status, message)         \
  do {                                                \
    EXPECT_EQ(call, status) << samebits_last_error(); \
    EXPECT_STREQ(samebits_last_error(), message);     \
  } while (false)

}  // namespace samebits::in_c
