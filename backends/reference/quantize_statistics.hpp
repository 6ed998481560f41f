// Statistics of a quantization, counted chunk by chunk so that threads cannot show in them.
#pragma once

#include <cstdint>
#include <span>

#include "numerics/quantize/statistics.hpp"
#include "numerics/sums/sum_tree.hpp"
#include "samebits/quantize.hpp"
#include "samebits/reductions.hpp"

namespace samebits::backends {

using numerics::quantized_element;

/// The statistics of part of a matrix.
struct quantize_tally {
  std::uint64_t elements = 0;
  numerics::quantize_counts counts = {};
  double signal = 0, noise = 0;
};

/// Counts the elements of a chunk: chunk_elements elements of the matrix in order, from a multiple
/// of chunk_elements on, or those that are left. It is a node of the tree of contract §6.
class chunk_counter {
 public:
  static constexpr std::int64_t chunk_elements = numerics::chunk_elements;
  static constexpr std::size_t most_at_once = 256;

  /// Up to most_at_once elements.
  void add(std::span<const quantized_element> elements);
  [[nodiscard]] quantize_tally tally() const;

 private:
  std::uint64_t elements_ = 0;
  numerics::quantize_counts counts_;
  tree_sum signal_;
  tree_sum noise_;
};

/// The statistics of a matrix from those of its chunks, in order.
quantize_statistics total(std::span<const quantize_tally> chunks);

}  // namespace samebits::backends
