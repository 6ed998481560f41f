// Statistics of casts: what a gradient is, and what fp16 would lose of it, without and with a loss
// scale. The gradient comes in parts, as from a file.
#include <cstdint>
#include <iostream>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

/// Rows [first, first + 100) of a matrix with 1000 columns: 2^0 to 2^-31, each 31250 times.
std::vector<samebits::bf16> rows_of(std::int64_t first) {
  std::vector<samebits::bf16> part;
  for (std::int64_t i = first * 1000; i < (first + 100) * 1000; ++i) {
    part.emplace_back(1.0f / static_cast<float>(std::uint32_t{1} << (i % 32)));
  }
  return part;
}

samebits::cast_statistics statistics_at(int scale_log2) {
  samebits::statistics_pass pass({.format = samebits::format_id::bf16,
                                  .casts = {samebits::format_id::fp16},
                                  .scale_log2 = scale_log2,
                                  .sums = true,
                                  .percentiles = true},
                                 {1000, 1000}, {.threads = 2});
  do {  // percentiles take a second pass
    for (std::int64_t row = 0; row < 1000; row += 100) {
      const std::vector<samebits::bf16> part = rows_of(row);
      pass.add(samebits::view_of(part.data(), 100, 1000));
    }
  } while (pass.again());
  return pass.result();
}

}  // namespace

int main() {
  for (const int scale_log2 : {0, 15}) {
    const samebits::cast_statistics s = statistics_at(scale_log2);
    std::cout << "mean " << *s.mean << ", amax " << *s.amax << ", median " << s.percentiles[3]
              << "; fp16 of x * 2^" << scale_log2 << " loses " << s.casts[0].underflow << " of "
              << s.nonzero() << "\n";
  }
}
