// Sums: one number for all results of a function of binary32, in any order of operands, or for any words.
#pragma once

#include <cstdint>
#include <vector>

namespace samebits::support {

/// The sum of f(x) * (2 x + 1) over x = first, first + stride, ... below end, mod 2^64. Both x and
/// f(x) are binary32 bits. Every factor is odd, so a change of a single result changes the sum.
template <class Function>
std::uint64_t function_sum(const Function& f, std::uint64_t stride, std::uint64_t first = 0,
                           std::uint64_t end = std::uint64_t{1} << 32) {
  std::uint64_t sum = 0;
  for (std::uint64_t x = first; x < end; x += stride) {
    sum += std::uint64_t{f(static_cast<std::uint32_t>(x))} * (2 * x + 1);
  }
  return sum;
}

/// A function with the sums that its results must have.
struct summed_function {
  const char* name;
  std::uint32_t (*model)(std::uint32_t);
  std::uint64_t sum;       ///< over all 2^32 operands
  std::uint64_t sum_4099;  ///< over the operands 0, 4099, 2 * 4099, ...
};

/// Changes with every word and with their order.
class word_sum {
 public:
  void add(std::uint32_t word) { value_ = value_ * 0x9E3779B97F4A7C15u + word; }
  void add(const std::vector<std::uint32_t>& words) {
    for (const std::uint32_t word : words) add(word);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace samebits::support
