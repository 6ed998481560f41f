// Counts, extremes and energies of a quantization.
#include "oracle/quantize_statistics.hpp"

#include <algorithm>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/exact.hpp"
#include "oracle/sum_tree.hpp"

namespace samebits::oracle {
namespace {

constexpr std::uint32_t infinity = 0x7F800000;

std::uint32_t magnitude32(std::uint32_t code) { return code % 0x80000000u; }

bool is_finite32(std::uint32_t code) { return magnitude32(code) < infinity; }

std::uint64_t widened(std::uint32_t code) { return convert(fp32(), fp64(), code, {}); }

std::uint64_t square(std::uint64_t x) { return multiply(fp64(), x, x); }

void count(const format& to, const quantized_element& e, quantize_statistics& s) {
  const std::uint32_t x = magnitude32(e.x);
  const unsigned code = e.code % (1u << (to.code_bits - 1));  // without the sign
  s.amax = std::max(s.amax, x > infinity ? 0x7FFFFFFFu : x);
  if (x > infinity) ++s.nan;
  if (x == infinity) ++s.inf;
  if (x == 0) ++s.zeros;
  if (x >= infinity) return;
  if (x != 0 && (s.min_nonzero == 0 || x < s.min_nonzero)) s.min_nonzero = x;
  if (x != 0 && (code == 0 || magnitude32(e.dequantized) == 0)) ++s.underflowed;
  // y of a finite x is NaN only where propagate made the factor NaN.
  if (magnitude32(e.y) > infinity) return;
  if (e.overflowed) ++s.overflowed;
}

}  // namespace

quantize_statistics statistics_of(const format& to,
                                  const std::vector<quantized_element>& elements) {
  quantize_statistics s;
  std::vector<std::uint64_t> errors;
  std::vector<std::uint64_t> signals;
  for (const quantized_element& e : elements) {
    count(to, e, s);
    const bool both = is_finite32(e.x) && is_finite32(e.dequantized);
    const std::uint64_t x = widened(e.x);
    const std::uint64_t restored = widened(e.dequantized);
    errors.push_back(both ? square(subtract(fp64(), x, restored)) : 0);
    signals.push_back(both ? square(x) : 0);
  }
  s.error_energy = sum_tree(errors);
  s.signal_energy = sum_tree(signals);
  return s;
}

}  // namespace samebits::oracle
