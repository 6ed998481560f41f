// The right codes of fp32 codes in order, by merging them with an exact step function.
//
// Between two thresholds the right code is constant. So the expected codes of a run of inputs are a
// few fills, and judging them is one comparison of memory; the exact arithmetic was done once per
// threshold (contract §10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/thresholds.hpp"
#include "samebits/core/format.hpp"

namespace samebits::support {

/// The first code in which two arrays of the same size differ.
std::optional<std::size_t> first_difference(format_id f, const std::vector<std::byte>& a,
                                            const std::vector<std::byte>& b);

/// A step function of fp32 in the order of its codes 0 .. 2^32 - 1, specials included.
class code_steps {
 public:
  /// Throws std::invalid_argument unless f is from fp32.
  explicit code_steps(const oracle::step_function& f);

  /// Writes the right codes of first, first + stride, ... (count of them, all below 2^32) as
  /// elements of the destination's storage width.
  void fill(std::uint64_t first, std::uint64_t stride, std::size_t count, void* expected) const;

  /// The right codes of sorted inputs.
  [[nodiscard]] std::vector<std::uint64_t> at(const std::vector<std::uint32_t>& inputs) const;

  /// The fp32 codes within `reach` codes of a change of the result, among them the first and last
  /// finite ones; and NaNs: every payload of one bit or of all but one, both signs. Sorted.
  [[nodiscard]] std::vector<std::uint32_t> codes_around(std::uint32_t reach) const;

 private:
  struct segment {
    std::uint64_t first;
    std::uint32_t code;
  };
  template <class Element>
  void fill_elements(std::uint64_t first, std::uint64_t stride, std::size_t count,
                     Element* expected) const;
  void append(std::uint64_t first, std::uint32_t code) { segments_.push_back({first, code}); }

  std::vector<segment> segments_;  ///< the last one is a sentinel at 2^32
  int storage_bits_;
};

}  // namespace samebits::support
