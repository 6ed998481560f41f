// Statistics of casts from the definitions in samebits/cast_statistics.hpp, by the plainest code, and
// the matrices on which tests compare them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "samebits/cast_statistics.hpp"
#include "samebits/core/format.hpp"

namespace samebits::plain_statistics {

inline std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

/// A dense matrix of codes.
struct matrix {
  format_id format;
  std::int64_t rows;
  std::int64_t cols;
  std::vector<std::uint64_t> codes = {};

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(rows * cols); }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(storage_bytes(format));
  }
  [[nodiscard]] std::vector<std::byte> memory() const {
    std::vector<std::byte> all(codes.size() * bytes());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      std::memcpy(all.data() + i * bytes(), &codes[i], bytes());
    }
    return all;
  }
};

enum class content : std::uint8_t {
  any_bits,
  ordinary,
  subnormal,
  borders,
  few_values,
  zeros,
  nan
};
inline constexpr content contents[] = {content::any_bits, content::ordinary,   content::subnormal,
                                       content::borders,  content::few_values, content::zeros,
                                       content::nan};

/// The code of x in a format, rounded to nearest even.
std::uint64_t code_of(format_id format, double x);

/// All formats that casts have: not fp64 and e8m0.
std::vector<format_id> all_targets();

/// A matrix of random codes, the same in every run.
matrix draw(content what, format_id format, std::int64_t rows, std::int64_t cols);

/// Everything that is requested.
cast_statistics by_definition(const matrix& m, const statistics_request& request);

/// Expects equal bits of all figures.
void expect_equal(const cast_statistics& got, const cast_statistics& expected);

}  // namespace samebits::plain_statistics
