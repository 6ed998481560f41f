// Statistics of a quantization: implementation.
#include "backends/reference/quantize_statistics.hpp"

#include <array>
#include <bit>

#include "backends/self_test/build_flags.hpp"

namespace samebits::backends {
namespace {

double value(std::uint32_t x) { return static_cast<double>(std::bit_cast<float>(x)); }

double square(double x) { return x * x; }

}  // namespace

void chunk_counter::add(std::span<const quantized_element> elements) {
  std::array<double, max_at_once> signal;
  std::array<double, max_at_once> noise;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const quantized_element& e = elements[i];
    counts_.add(e);
    const bool adds = numerics::adds_squares(e.x, e.restored);
    signal[i] = adds ? square(value(e.x)) : 0.0;
    noise[i] = adds ? square(value(e.x) - value(e.restored)) : 0.0;
  }
  elements_ += elements.size();
  signal_.add(std::span(signal).first(elements.size()));
  noise_.add(std::span(noise).first(elements.size()));
}

quantize_chunk_statistics chunk_counter::statistics() const {
  return {elements_, counts_, signal_.value(), noise_.value()};
}

quantize_statistics total(std::span<const quantize_chunk_statistics> chunks) {
  quantize_statistics all;
  numerics::quantize_counts counts;
  tree_sum signal;
  tree_sum noise;
  for (const quantize_chunk_statistics& chunk : chunks) {
    all.elements += chunk.elements;
    counts.combine(chunk.counts);
    signal.add(chunk.signal);
    noise.add(chunk.noise);
  }
  all.zeros = counts.zeros;
  all.nan = counts.nan;
  all.inf = counts.inf;
  all.underflowed = counts.underflowed;
  all.saturated = counts.saturated;
  all.amax = std::bit_cast<float>(counts.amax);
  if (counts.min_nonzero != numerics::quantize_counts::none)
    all.min_nonzero = std::bit_cast<float>(counts.min_nonzero);
  all.signal = signal.value();
  all.noise = noise.value();
  return all;
}

}  // namespace samebits::backends
