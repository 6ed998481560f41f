// Slices of K: which products of a matrix product are summed by themselves, as in split K, and in
// which order the sum of a slice adds them.
#pragma once

#include <cstdint>

#include "samebits/core/accumulator.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// A product of zeros that completes an instruction.
inline constexpr std::int64_t no_element = -1;

/// The division of K into slices. Tiles of neighbouring elements stay together; a slice has
/// neighbouring tiles, or every count-th tile.
class k_slices {
 public:
  /// @param products  of an instruction; 1 without tensor core
  SAMEBITS_HD constexpr k_slices(const accumulator& sum, std::int64_t depth, std::int64_t products)
      : residue_tile_(sum.residue_tile), depth_(depth), products_(products) {
    const std::int64_t most = depth < 1 ? 1 : depth;
    tile_ = sum.slice_tile < most ? sum.slice_tile : most;
    const std::int64_t tiles = divided_up(most, tile_);
    count_ = sum.slices < tiles ? sum.slices : tiles;
    cyclic_ = count_ > 1 && sum.slice_order == slice_order::cyclic;
    if (cyclic_) return;
    tiles_of_one_ = divided_up(tiles, count_);
    count_ = divided_up(tiles, tiles_of_one_);
  }

  [[nodiscard]] SAMEBITS_HD constexpr std::int64_t count() const { return count_; }

  /// Calls add(k) for the elements of a slice in their order, and add(no_element) up to the end of
  /// an instruction. A contiguous slice may begin with a residue, which ends an instruction too.
  template <class Add>
  SAMEBITS_HD constexpr void for_each(std::int64_t slice, const Add& add) const {
    if (cyclic_) {
      for (std::int64_t k = slice * tile_; k < depth_; k += count_ * tile_) {
        in_instructions(k, smaller(depth_, k + tile_), add);
      }
      return;
    }
    const std::int64_t first = slice * tiles_of_one_ * tile_;
    const std::int64_t last = smaller(depth_, first + tiles_of_one_ * tile_);
    const std::int64_t residue = residue_tile_ == 0 ? 0 : (last - first) % residue_tile_;
    in_instructions(first, first + residue, add);
    in_instructions(first + residue, last, add);
  }

 private:
  static SAMEBITS_HD constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) {
    return a < b ? a : b;
  }
  static SAMEBITS_HD constexpr std::int64_t divided_up(std::int64_t n, std::int64_t by) {
    return n / by + (n % by != 0 ? 1 : 0);
  }
  template <class Add>
  SAMEBITS_HD constexpr void in_instructions(std::int64_t first, std::int64_t last,
                                             const Add& add) const {
    for (std::int64_t k = first; k < last; ++k) add(k);
    for (std::int64_t n = last - first; n % products_ != 0; ++n) add(no_element);
  }

  std::int64_t residue_tile_;
  std::int64_t depth_;
  std::int64_t products_;
  std::int64_t tile_ = 1;
  std::int64_t tiles_of_one_ = 0;  ///< of contiguous slices
  std::int64_t count_ = 1;
  bool cyclic_ = false;
};

}  // namespace samebits::numerics
