// Attention: the arithmetic of one score, one query and one gradient in FlashAttention 2 and in
// cuDNN's attention, as PyTorch 2.11 calls them on Hopper.
//
// A kernel visits the keys in blocks. A block's probabilities are powers of 2 relative to the
// largest score seen so far; when that score grows, the sums and the output of earlier blocks
// shrink by a power of 2. Products of matrices are chains of tensor core instructions.
//
// Source: FlashAttention's softmax.h, flash_fwd_kernel.h and flash_bwd_preprocess_kernel.h.
// cuDNN's source is closed: its steps were found by comparison with results of a GPU.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "samebits/core/attention.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::torch_2_11 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::ex2_approx;
using hopper::ex2_approx_ftz;

inline constexpr std::uint32_t minus_inf = binary32::sign_bit | binary32::inf;
inline constexpr std::uint32_t log2_of_e = 0x3FB8AA3Bu;
inline constexpr std::uint32_t log_of_2 = 0x3F317218u;

/// Threads that share a query. Thread t adds the probabilities of keys 8j + 2t and 8j + 2t + 1.
inline constexpr int query_threads = 4;

/// The kernel and its constants, binary32 bits.
struct attention_rule {
  attention_kernel kernel;  ///< flash or cudnn
  std::uint32_t scale;
  std::uint32_t scale_log2;  ///< scale * log2(e), in binary64, then rounded

  [[nodiscard]] SAMEBITS_HD constexpr bool is_flash() const {
    return kernel == attention_kernel::flash;
  }
};

/// 2^x. cuDNN flushes subnormal results to zero.
template <class Word>
SAMEBITS_HD constexpr Word attention_exp2(const attention_rule& r, Word x) {
  return r.is_flash() ? ex2_approx(x) : ex2_approx_ftz(x);
}

/// The largest score of a query, or 0 if all are -Inf.
template <class Word>
SAMEBITS_HD constexpr Word finite_max(Word max) {
  return select(max == Word(minus_inf), Word(0u), max);
}

/// The probability of a score relative to the largest one.
template <class Word>
SAMEBITS_HD constexpr Word probability(const attention_rule& r, Word score, Word max) {
  const Word shift = mul(finite_max(max), Word(r.scale_log2));
  return attention_exp2(r, sub(mul(score, Word(r.scale_log2)), shift));
}

/// The factor of earlier sums and outputs when the largest score grows.
template <class Word>
SAMEBITS_HD constexpr Word rescaling(const attention_rule& r, Word before, Word max) {
  const Word c = r.scale_log2, now = finite_max(max);
  return attention_exp2(r,
                        r.is_flash() ? mul(sub(before, now), c) : sub(mul(before, c), mul(now, c)));
}

/// The sum with the first probability of a block. `factor`: rescaling().
template <class Word>
SAMEBITS_HD constexpr Word first_of_block(const attention_rule& r, bool first_block, Word before,
                                          Word factor, Word p) {
  return r.is_flash() && !first_block ? fma(before, factor, p) : p;
}
/// The sum at the end of a block.
template <class Word>
SAMEBITS_HD constexpr Word end_of_block(const attention_rule& r, bool first_block, Word before,
                                        Word factor, Word sum) {
  return r.is_flash() || first_block ? sum : fma(before, factor, sum);
}

/// A query's results from its largest score and the sums of its threads.
struct query_end {
  std::uint32_t factor;  ///< of the output
  std::uint32_t lse;
};

/// @param empty  the log-sum-exp of a query without keys: Inf, in a part of the keys -Inf
SAMEBITS_HD constexpr query_end end_of_query(const attention_rule& r, std::uint32_t max,
                                             const std::uint32_t* sums, std::uint32_t empty) {
  if (r.is_flash()) {
    const std::uint32_t sum = add(add(sums[0], sums[2]), add(sums[1], sums[3]));
    if (binary32::is_zero(sum) || binary32::is_nan(sum)) return {binary32::one, empty};
    return {div(binary32::one, sum), fma(max, r.scale, cuda_13_0::fast_log(sum))};
  }
  const std::uint32_t sum = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
  const std::uint32_t log2_of_sum = hopper::lg2_approx_ftz(sum);
  return {hopper::rcp_approx_ftz(sum),
          fma(mul(finite_max(max), r.scale_log2), log_of_2, mul(log2_of_sum, log_of_2))};
}

inline constexpr int max_splits = 128;

/// Combines the log-sum-exps of `splits` parts of the keys.
/// @param dimension  head dimension, which decides how many threads share a query
SAMEBITS_HD constexpr std::uint32_t combined_lse(const std::uint32_t* lse, int splits,
                                                 int dimension) {
  int places = 2;
  while (places < splits) places *= 2;
  const int most_threads = dimension == 128 ? 32 : 16;
  const int threads = places < most_threads ? places : most_threads;
  std::uint32_t max = minus_inf;
  for (int i = 0; i < splits; ++i) max = lt(max, lse[i]) ? lse[i] : max;
  max = finite_max(max);
  std::uint32_t sums[32] = {};
  for (int i = 0; i < places; ++i) {
    const std::uint32_t x = i < splits ? lse[i] : minus_inf;
    std::uint32_t& sum = sums[i % threads];
    const std::uint32_t term = cuda_13_0::exp(sub(x, max));
    sum = i < threads ? term : add(sum, term);
  }
  const std::uint32_t sum =
      fold_halves(sums, threads, [](std::uint32_t a, std::uint32_t b) { return add(a, b); });
  if (binary32::is_zero(sum) || binary32::is_nan(sum)) return binary32::inf;
  return add(cuda_13_0::log(sum), max);
}

/// The factor of one part's output.
SAMEBITS_HD constexpr std::uint32_t split_factor(std::uint32_t lse, std::uint32_t combined) {
  return cuda_13_0::exp(sub(lse, combined));
}

/// The dot product of a query's gradient and output, `dimension` numbers each.
SAMEBITS_HD constexpr std::uint32_t output_dot(const attention_rule& r, const std::uint32_t* grad,
                                               const std::uint32_t* out, int dimension) {
  constexpr int vector = 8;
  std::uint32_t sums[16] = {};
  const int threads = r.is_flash() ? 8 : dimension / vector;
  for (int i = 0; i < dimension; i += r.is_flash() ? 1 : 2) {
    std::uint32_t& sum = sums[i / vector % threads];
    if (r.is_flash()) {
      sum = i / vector < threads && i % vector == 0 ? mul(grad[i], out[i])
                                                    : fma(grad[i], out[i], sum);
    } else {
      const std::uint32_t pair = fma(grad[i + 1], out[i + 1], mul(grad[i], out[i]));
      sum = i % vector == 0 ? pair : add(sum, pair);
    }
  }
  return fold_halves(sums, threads, [](std::uint32_t a, std::uint32_t b) { return add(a, b); });
}

/// A probability in the backward pass, from the log-sum-exp of its query.
template <class Word>
SAMEBITS_HD constexpr Word backward_probability(const attention_rule& r, Word score, Word lse) {
  if (r.is_flash()) {
    const Word shift = mul(select(lse == Word(minus_inf), Word(0u), lse), Word(log2_of_e));
    return attention_exp2(r, sub(mul(score, Word(r.scale_log2)), shift));
  }
  return attention_exp2(r, mul(fma(score, Word(r.scale), neg(lse)), Word(log2_of_e)));
}

/// The gradient of a score, from its probability p, the gradient of p, and output_dot(). cuDNN
/// includes the scale.
template <class Word>
SAMEBITS_HD constexpr Word score_gradient(const attention_rule& r, Word p, Word grad, Word dot) {
  const Word product = mul(p, sub(grad, dot));
  return r.is_flash() ? product : mul(product, Word(r.scale));
}

/// The last factor of dQ and dK.
SAMEBITS_HD constexpr std::uint32_t scaled_gradient(const attention_rule& r, std::uint32_t sum) {
  return r.is_flash() ? mul(sum, r.scale) : sum;
}

}  // namespace samebits::numerics::torch_2_11
