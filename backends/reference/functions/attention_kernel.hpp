// The softmax of a block and the gradients of its scores, for one column or for SIMD lanes.
// `Policy` brings its Word and its registers:
//
//   word, columns           numbers of a register, one per column
//   load, store             registers of binary32 bits or codes
//   put(format, words, p, codes)   stores the numbers at position p of a step of B
//   b_words                 words of a step of B
//   is_special(format, codes), is_any(mask)   Inf and NaN
//
// Included by one file per instruction set, which defines nothing else.
#pragma once

#include <cstdint>

#include "backends/dispatch/calls/attention.hpp"
#include "numerics/hardware/torch_operators/attention.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"

namespace samebits::backends {

template <class Policy>
SAMEBITS_INLINE bool attention_block_of(const attention_block& b) {
  namespace torch = numerics::torch_2_11;
  using namespace numerics::ptx;  // NOLINT(google-build-using-namespace): steps of any Word
  using numerics::select;
  using word = typename Policy::word;
  constexpr int columns = Policy::columns;
  const torch::attention_rule rule = *b.rule;
  const word visible = Policy::load(b.visible), before = Policy::load(b.max);
  word max = before;
  for (int key = 0; key < b.keys; ++key) {
    std::uint32_t* const at = b.scores + key * columns;
    const word s = select(word(static_cast<std::uint32_t>(key)) < visible, Policy::load(at),
                          word(torch::minus_inf));
    max = select(lt(max, s), s, max);
    Policy::store(at, s);
  }
  for (int key = 0; key < b.keys; ++key) {  // a loop of its own: many numbers in flight
    std::uint32_t* const at = b.scores + key * columns;
    Policy::store(at, torch::probability<word>(rule, Policy::load(at), max));
  }
  const word factor = torch::rescaling<word>(rule, before, max);
  for (int t = 0; t < torch::query_threads; ++t) {
    const word earlier = Policy::load(b.sums + t * columns);
    word sum = torch::first_of_block<word>(rule, b.first, earlier, factor,
                                           Policy::load(b.scores + 2 * t * columns));
    for (int key = 2 * t + 1; key < b.keys;
         key += key % 2 == 0 ? 1 : 2 * torch::query_threads - 1) {
      sum = add(sum, Policy::load(b.scores + key * columns));
    }
    Policy::store(b.sums + t * columns,
                  torch::end_of_block<word>(rule, b.first, earlier, factor, sum));
  }
  Policy::store(b.max, max);
  for (int i = 0; i < (b.first ? 0 : b.dimension); ++i) {
    std::uint32_t* const at = b.out + i * columns;
    Policy::store(at, mul(Policy::load(at), factor));
  }
  word special = 0u;
  for (int key = 0; key < b.keys; ++key) {
    const word code = torch::code_of<word>(b.format, Policy::load(b.scores + key * columns));
    special = select(Policy::is_special(b.format, code), word(1u), special);
    Policy::put(b.format, b.probabilities + key / attention_step * Policy::b_words,
                key % attention_step, code);
  }
  return Policy::is_any(special == word(1u));
}

template <class Policy>
SAMEBITS_INLINE bool gradients_of(const gradient_block& b) {
  namespace torch = numerics::torch_2_11;
  using namespace numerics::ptx;  // NOLINT(google-build-using-namespace): steps of any Word
  using numerics::select;
  using word = typename Policy::word;
  const torch::attention_rule rule = *b.rule;
  const word keys = Policy::load(b.keys);
  word special = 0u;
  for (int i = b.queries; i % attention_step != 0; ++i) {  // zeros up to a whole step
    const int step = i / attention_step * Policy::b_words;
    Policy::put(b.format, b.probabilities + step, i % attention_step, word(0u));
    Policy::put(b.format, b.gradients + step, i % attention_step, word(0u));
  }
  for (int i = 0; i < b.queries; ++i) {
    const word score = Policy::load(b.scores + i * Policy::columns);
    const word p = select(keys < word(b.visible[i]),
                          torch::backward_probability<word>(rule, score, word(b.lse[i])), word(0u));
    const word gradient = torch::score_gradient<word>(
        rule, p, Policy::load(b.grads + i * Policy::columns), word(b.dots[i]));
    const word p_code = torch::code_of<word>(b.format, p);
    const word code = torch::code_of<word>(b.format, gradient);
    special = select(Policy::is_special(b.format, p_code) | Policy::is_special(b.format, code),
                     word(1u), special);
    const int step = i / attention_step * Policy::b_words;
    Policy::put(b.format, b.probabilities + step, i % attention_step, p_code);
    Policy::put(b.format, b.gradients + step, i % attention_step, code);
    Policy::store(b.codes + i * b.stride, code);
  }
  return Policy::is_any(special == word(1u));
}

}  // namespace samebits::backends
