// Scores: what attention does to the rows of softmax's argument before softmax, and to their gradient
// after it, as PyTorch 2.11's operators one after another on CUDA tensors: a product with a scale,
// masked_fill or the sum with a mask, masked_fill above the diagonal. Each rounds to the tensor's format.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::torch_2_11 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word

/// What a mask does to the scores.
enum class mask_use : std::uint8_t {
  none,   ///< there is no mask
  fills,  ///< a score becomes -Inf where the mask's byte is not 0
  added,  ///< the mask's number is added to the score
};

/// The steps of a call. Its rows are [batch, heads, queries].
struct score_rule {
  std::uint32_t scale = binary32::one;  ///< binary32
  mask_use mask = mask_use::none;
  bool causal = false;
  std::int64_t heads = 1;
  std::int64_t queries = 1;
  std::int64_t steps[3] = {};  ///< rows of the mask to the next batch, head, query

  [[nodiscard]] SAMEBITS_HD constexpr std::int64_t mask_row_of(std::int64_t row) const {
    const auto of = [&](auto r, auto all_heads, auto all_queries) {
      const auto matrix = r / all_queries;
      return static_cast<std::int64_t>(matrix / all_heads) * steps[0] +
             static_cast<std::int64_t>(matrix % all_heads) * steps[1] +
             static_cast<std::int64_t>(r % all_queries) * steps[2];
    };
    constexpr std::int64_t word = std::int64_t{1} << 32;  // divisions of 32 bits are faster
    if (row < word && heads < word && queries < word) {
      return of(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(heads),
                static_cast<std::uint32_t>(queries));
    }
    return of(row, heads, queries);
  }
  /// The columns of a row of n that the diagonal does not hide: 0 to visible - 1.
  [[nodiscard]] SAMEBITS_HD constexpr std::int64_t visible(std::int64_t row, std::int64_t n) const {
    if (!causal) return n;
    const std::int64_t all = row % queries + 1;
    return all < n ? all : n;
  }
};

/// Softmax's argument, from a visible score; the caller rounds it. `numbers`: as in evaluate_fused().
/// `mask`: the number that is added, or any but +0 where the mask fills.
template <class Numbers, class Word>
SAMEBITS_HD constexpr Word masked_score(const score_rule& rule, const Numbers& numbers, Word x,
                                        Word mask) {
  const Word y = mul(x, Word(rule.scale));
  if (rule.mask == mask_use::added) return add(numbers.stored(y), mask);
  if (rule.mask == mask_use::none) return y;
  return select(mask == Word(0u), y, Word(binary32::sign_bit | binary32::inf));
}

/// The gradient of a score, from that of softmax's argument; the caller rounds it.
template <class Word>
SAMEBITS_HD constexpr Word score_gradient(const score_rule& rule, Word grad, mask_of<Word> hidden) {
  return mul(select(hidden, Word(0u), grad), Word(rule.scale));
}

}  // namespace samebits::numerics::torch_2_11
