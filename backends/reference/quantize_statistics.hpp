// Statistics of a quantization. Collected chunk by chunk, so the number of threads does not change
// them.
#pragma once

#include <cstdint>
#include <span>

#include "numerics/quantize/statistics.hpp"
#include "numerics/sums/sum_tree.hpp"
#include "samebits/quantize.hpp"
#include "samebits/reductions.hpp"

namespace samebits::backends {

using numerics::quantized_element;

/// Partial statistics of part of a matrix.
struct quantize_chunk_statistics {
  std::uint64_t elements = 0;
  numerics::quantize_counts counts = {};
  double signal = 0, noise = 0;
};

/// Collects the partial statistics of a chunk: chunk_elements consecutive elements of the matrix,
/// starting at a multiple of chunk_elements, or the remaining ones. A chunk is a subtree of the
/// tree of contract §6.
class chunk_counter {
 public:
  static constexpr std::int64_t chunk_elements = numerics::chunk_elements;
  static constexpr std::size_t max_at_once = 256;

  /// Adds up to max_at_once elements.
  void add(std::span<const quantized_element> elements);
  [[nodiscard]] quantize_chunk_statistics statistics() const;

 private:
  std::uint64_t elements_ = 0;
  numerics::quantize_counts counts_;
  tree_sum signal_;
  tree_sum noise_;
};

/// Combines the partial statistics of all chunks, in order, to those of the matrix.
quantize_statistics total(std::span<const quantize_chunk_statistics> chunks);

}  // namespace samebits::backends
