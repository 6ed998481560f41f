// The kernel of functions of arrays on SIMD lanes (`Isa`: steps_avx2.hpp, steps_avx512.hpp).
// Included by one file per instruction set, which defines nothing else. convert_kernel.hpp says
// what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/functions/functions.hpp"
#include "backends/simd/lanes/access.hpp"
#include "numerics/hardware/cuda_functions/two_over_pi.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "numerics/hardware/torch_operators/fused_elements.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

using numerics::cuda_13_0::quarter_turns;

/// Lanes in memory.
template <class Lanes>
struct alignas(64) words_of_lanes {
  std::uint32_t word[Lanes::count];
};
template <class Isa>
SAMEBITS_INLINE words_of_lanes<typename Isa::word> stored_words(typename Isa::word x) {
  words_of_lanes<typename Isa::word> words;
  store<Isa>(words.word, x);
  return words;
}
template <class Isa>
SAMEBITS_INLINE typename Isa::word loaded(const words_of_lanes<typename Isa::word>& words) {
  return load<Isa>(words.word);
}

/// Large angles are rare in practice: their lanes are computed one by one.
template <class Isa, class Lanes>
SAMEBITS_INLINE quarter_turns<Lanes> turns_of_angle(numerics::mask_of<Lanes> large, Lanes x,
                                                    const quarter_turns<Lanes>& small) {
  if (!any(large)) return small;
  const auto chosen = stored_words<Isa>(select(large, Lanes(1u), Lanes(0u)));
  const auto operands = stored_words<Isa>(x);
  auto angle = stored_words<Isa>(small.angle);
  auto quadrant = stored_words<Isa>(small.quadrant);
  backends::reduce_large_angles(chosen.word, operands.word, angle.word, quadrant.word,
                                Lanes::count);
  return {loaded<Isa>(angle), loaded<Isa>(quadrant)};
}

template <class Isa, class Lanes>
SAMEBITS_INLINE Lanes lg2_of(Lanes x) {
  auto words = stored_words<Isa>(x);
  backends::scalar_lg2_approx(words.word, Lanes::count);
  return loaded<Isa>(words);
}

/// function_codes of backends/dispatch/calls/evaluate.hpp, of all rules but `exact`.
template <class Isa>
SAMEBITS_INLINE void function_codes_of(const backends::evaluate_call& call,
                                       backends::function_chunk& chunk, int count) {
  using lanes = typename Isa::word;
  const numerics::function_plan plan = call.plan;
  const bool gradient = call.grad.data != nullptr;
  for (int i = 0; i < count; i += lanes::count) {
    lanes y = load<Isa>(chunk.x + i);
    if (gradient) {
      y = numerics::evaluate_gradient_code<lanes>(plan, load<Isa>(chunk.grad + i), y);
    } else {
      y = numerics::evaluate_code<lanes>(plan, y);
    }
    store<Isa>(chunk.codes + i, y);
  }
}

/// fused_codes of backends/dispatch/calls/fused.hpp.
template <class Isa>
SAMEBITS_INLINE void fused_codes_of(const backends::fused_call& call, backends::fused_chunk& chunk,
                                    int count) {
  using lanes = typename Isa::word;
  const numerics::torch_2_11::fused_plan plan = call.plan;
  const numerics::torch_2_11::tensor_numbers<lanes> numbers{plan.f.format};
  const int operands = call.operands(), results = call.results();
  for (int i = 0; i < count; i += lanes::count) {
    lanes x[backends::max_fused_operands], y[backends::max_fused_results];
    for (int k = 0; k < backends::max_fused_operands; ++k) {
      x[k] = k < operands ? numbers.value(load<Isa>(chunk.in[k] + i)) : lanes(0u);
    }
    numerics::torch_2_11::evaluate_fused(plan, numbers, x, load<Isa>(chunk.random + i), y);
    for (int k = 0; k < results; ++k) {
      store<Isa>(chunk.out[k] + i, numbers.code(y[k]));
    }
  }
}

}  // namespace samebits::simd
