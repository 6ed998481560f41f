// Losses of fp16 at each loss scale: implementation.
#include "fpinspect/verdict/loss_scale.hpp"

namespace fpinspect {
namespace {

constexpr int zero_tie = -25;   // 2^-25 is half of the smallest subnormal: ties to even, to 0
constexpr int top_binade = 15;  // 65520 = 2^15 * (2 - 2^-11) is the smallest that overflows

}  // namespace

void add(binades& sum, const binades& more) {
  for (const auto& [exponent, counts] : more) sum[exponent].add(counts);
}

scale_loss loss_at(const binades& elements, int log2) {
  scale_loss loss = {.log2 = log2};
  for (const auto& [exponent, counts] : elements) {
    const int scaled = exponent + log2;
    if (scaled < zero_tie) loss.underflow += counts.all;
    if (scaled == zero_tie) loss.underflow += counts.powers;
    if (scaled == top_binade) loss.overflow += counts.top;
    if (scaled > top_binade) loss.overflow += counts.all;
  }
  return loss;
}

std::optional<int> best_scale_log2(const binades& elements) {
  if (elements.empty()) return std::nullopt;
  const auto& [exponent, counts] = *elements.rbegin();
  return top_binade - exponent - (counts.top != 0 ? 1 : 0);
}

}  // namespace fpinspect
