// What one format does to consecutive elements, which are float or double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fpinspect/tensors/meters/chunk_tree.hpp"
#include "fpinspect/tensors/meters/format_effect.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// A target format, with data that is computed once.
struct target_format {
  explicit target_format(samebits::format_id id);

  samebits::format_id format;
  double overflow_start;  ///< the smallest magnitude that overflows; infinity if none does
  float min_normal;
};

/// Measures the effect of formats on one chunk of elements after another.
class effect_meter {
 public:
  /// Begins a chunk of up to chunk_elements elements.
  template <class Value>
  void begin(std::span<const Value> exact);

  /// The effect of a format on the chunk. signal and noise are the roots of the trees over the
  /// chunk alone; the saturated sums are 0.
  ///
  /// @param exact  the elements that were given to begin()
  /// @param rounded  the elements rounded to the format
  template <class Value>
  [[nodiscard]] format_effect effect(const target_format& to, std::span<const Value> exact,
                                     std::span<const float> rounded);

 private:
  chunk_tree tree_;
  // Of the chunk:
  std::size_t zeros_ = 0;
  double largest_ = 0;  ///< largest magnitude, with NaN above all numbers
  double signal_ = 0;   ///< root over the squares of the finite elements
};

}  // namespace fpinspect
