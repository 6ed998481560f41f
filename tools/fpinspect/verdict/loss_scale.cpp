// Losses of formats at each loss scale: implementation.
#include "fpinspect/verdict/verdict.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

constexpr int top_binade = 15;  // 65520 = 2^15 * (2 - 2^-11) is the smallest that overflows

/// Half of the smallest subnormal is 2^this: a tie, which goes to 0. For fp16 -25.
int zero_tie_of(samebits::format_id format) {
  const samebits::format_spec f = samebits::spec_of(format);
  return -f.bias - f.mantissa_bits;
}

}  // namespace

void add(binades& sum, const binades& more) {
  for (const auto& [exponent, counts] : more) sum[exponent].add(counts);
}

scale_loss loss_at(const binades& elements, int log2) {
  scale_loss loss = {.log2 = log2,
                     .underflow = underflow_at(elements, log2, samebits::format_id::fp16)};
  for (const auto& [exponent, counts] : elements) {
    const int scaled = exponent + log2;
    if (scaled == top_binade) loss.overflow += counts.top;
    if (scaled > top_binade) loss.overflow += counts.all;
  }
  return loss;
}

double sqnr_bound_at(const binades& elements, int log2) {
  if (elements.empty()) return std::numeric_limits<double>::infinity();
  constexpr int half_ulp = 11;    // of 2^e: 2^(e - 11)
  constexpr int subnormal = -25;  // half of the distance between subnormals is 2^-25
  const int top = elements.rbegin()->first;
  double signal = 0;
  double noise = 0;
  for (const auto& [exponent, counts] : elements) {
    const auto count = static_cast<double>(counts.all);
    const int error = std::max(exponent - half_ulp, subnormal - log2);
    signal += std::ldexp(count, 2 * (exponent - top));
    noise += std::ldexp(count, 2 * (error - top));
  }
  return 10.0 * std::log10(signal / noise);
}

std::optional<int> best_scale_log2(const binades& elements) {
  if (elements.empty()) return std::nullopt;
  const auto& [exponent, counts] = *elements.rbegin();
  return std::clamp(top_binade - exponent - (counts.top != 0 ? 1 : 0), smallest_scale_log2,
                    largest_scale_log2);
}

std::uint64_t underflow_at(const binades& elements, int log2, samebits::format_id to) {
  const int tie = zero_tie_of(to);
  std::uint64_t underflow = 0;
  for (const auto& [exponent, counts] : elements) {
    if (exponent + log2 < tie) underflow += counts.all;
    if (exponent + log2 == tie) underflow += counts.powers;
  }
  return underflow;
}

std::optional<int> best_scale_log2(double amax, samebits::format_id to) {
  if (amax == 0) return std::nullopt;
  int exponent = 0;
  const double fraction = std::frexp(amax, &exponent);  // amax = fraction * 2^exponent
  const auto overflows = [&](int binade) {
    const auto code = std::bit_cast<std::uint64_t>(std::ldexp(fraction, binade));
    return samebits::convert_code(samebits::format_id::fp64, to, code).overflow;
  };
  int binade = 1 << samebits::spec_of(to).exponent_bits;  // every fraction overflows far above
  while (overflows(binade)) --binade;
  if (binade - exponent < smallest_scale_log2) return std::nullopt;
  return std::min(binade - exponent, largest_scale_log2);
}

}  // namespace fpinspect
