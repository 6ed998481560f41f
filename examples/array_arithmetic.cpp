// Array arithmetic: updates of a bf16 weight, the flags of a call, and dot products. Small updates
// leave the weight unchanged with rounding to nearest, and move it with stochastic rounding.
#include <cstdint>
#include <iostream>
#include <vector>

#include "samebits/samebits.hpp"

int main() {
  using namespace samebits;
  const std::vector<bf16> step(4096, bf16(0.001f));
  std::vector<bf16> nearest(step.size(), bf16(1.0f));
  std::vector<bf16> random = nearest;

  for (std::uint64_t t = 0; t < 1000; ++t) {
    // In place: the result may be an operand. Every update of every element uses its own random
    // bits.
    compute(operation::add, {view_of(nearest), view_of(step)}, view_of(nearest));
    compute(operation::add, {view_of(random), view_of(step)}, view_of(random),
            {.rounding = rounding::stochastic, .random = {.seed = 1, .stream = t}});
  }
  const auto count = static_cast<double>(step.size());
  std::cout << "1 + 1000 * 0.001, nearest: " << sum(view_of(nearest)) / count
            << ", stochastic: " << sum(view_of(random)) / count << "\n";

  // fp16 operands, e4m3 results; `raised` holds the flags of all elements.
  const std::vector<fp16> x{fp16(1.5f), fp16(3.0f), fp16(100.0f)};
  std::vector<e4m3> product(x.size());
  const flags raised = compute_with_flags(operation::mul, {view_of(x), view_of(x)},
                                          view_of(product), {.overflow = overflow::saturate});
  std::cout << "100 * 100 in e4m3: " << static_cast<float>(product[2])
            << (has(raised, flags::overflow) ? ", overflow" : "") << "\n";

  // First: products and sums rounded to binary32, in sequence. Second: in binary64 by the fixed
  // tree.
  const dot_options narrow{accumulation::fp32, sum_order::sequential};
  std::cout << "dot: " << dot(view_of(x), view_of(x), narrow) << ", " << dot(view_of(x), view_of(x))
            << ", amax " << amax(view_of(x)) << "\n";
}
