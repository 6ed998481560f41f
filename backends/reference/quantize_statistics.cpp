// Statistics of a quantization.
#include "backends/reference/quantize_statistics.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "backends/self_test/build_flags.hpp"
#include "numerics/arithmetic/binary32.hpp"

namespace samebits::backends {
namespace {

namespace binary32 = numerics::binary32;

constexpr std::uint32_t none = quantize_tally{}.min_nonzero;

bool is_finite(std::uint32_t x) { return binary32::magnitude(x) < binary32::inf; }

double value(std::uint32_t x) { return static_cast<double>(std::bit_cast<float>(x)); }

double square(double x) { return x * x; }

void count(const quantized_element& e, quantize_tally& t) {
  ++t.count;
  const std::uint32_t magnitude = binary32::magnitude(e.x);
  t.amax = std::max(t.amax, magnitude > binary32::inf ? binary32::nan : magnitude);
  if (magnitude > binary32::inf) {
    ++t.nan;
  } else if (magnitude == binary32::inf) {
    ++t.inf;
  } else if (magnitude == 0) {
    ++t.zeros;
  } else {
    t.min_nonzero = std::min(t.min_nonzero, magnitude);
    if (binary32::magnitude(e.code << 24) == 0) ++t.underflowed;
    if (e.overflow || binary32::is_inf(e.y)) ++t.saturated;
  }
}

}  // namespace

void chunk_counter::add(std::span<const quantized_element> elements) {
  std::array<double, most_at_once> signal;
  std::array<double, most_at_once> noise;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const quantized_element& e = elements[i];
    count(e, counts_);
    const bool paired = is_finite(e.x) && is_finite(e.restored);
    signal[i] = paired ? square(value(e.x)) : 0.0;
    noise[i] = paired ? square(value(e.x) - value(e.restored)) : 0.0;
  }
  signal_.add(std::span(signal).first(elements.size()));
  noise_.add(std::span(noise).first(elements.size()));
}

quantize_tally chunk_counter::tally() const {
  quantize_tally t = counts_;
  t.signal = signal_.value();
  t.noise = noise_.value();
  return t;
}

quantize_statistics total(std::span<const quantize_tally> chunks) {
  quantize_statistics all;
  tree_sum signal;
  tree_sum noise;
  quantize_tally extremes;
  for (const quantize_tally& chunk : chunks) {
    all.count += chunk.count;
    all.zeros += chunk.zeros;
    all.nan += chunk.nan;
    all.inf += chunk.inf;
    all.underflowed += chunk.underflowed;
    all.saturated += chunk.saturated;
    extremes.amax = std::max(extremes.amax, chunk.amax);
    extremes.min_nonzero = std::min(extremes.min_nonzero, chunk.min_nonzero);
    signal.add(chunk.signal);
    noise.add(chunk.noise);
  }
  all.amax = std::bit_cast<float>(extremes.amax);
  if (extremes.min_nonzero != none) all.min_nonzero = std::bit_cast<float>(extremes.min_nonzero);
  all.signal = signal.value();
  all.noise = noise.value();
  return all;
}

}  // namespace samebits::backends
