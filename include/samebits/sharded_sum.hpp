// Sharded sums: one tree_sum over leaves that are spread over ranks, with the bits of the sum in
// one place.
//
//   // Rank r holds elements [begin, end) of a gradient, cut at multiples of 4096.
//   samebits::tree_part squares(begin);
//   squares.add_squares(samebits::view_of(shard));
//   const double norm = std::sqrt(samebits::sum_shards(ranks, {&squares, 1}).total);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebits/communicator.hpp"
#include "samebits/reductions.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Leaves of a chunk, the subtree that shards are cut by (contract §6).
inline constexpr std::uint64_t chunk_leaves = 4096;

/// The part of a tree_sum's tree over the leaves [first, first + count): what one rank, or one
/// device, holds of a sum that is spread over several.
///
/// Leaves are appended as to a tree_sum. What is kept, and what ranks exchange, are the values of
/// the largest subtrees that lie in the part: at most 2 for each doubling of the chunks, whatever
/// their number. sum_shards() puts the parts of all ranks together.
///
/// Functions that compute throw environment_error as tree_sum's do.
class tree_part {
 public:
  /// A part that begins at leaf `first`. Throws invalid_argument unless that is a chunk's first
  /// leaf, a multiple of 4096, and below 2^62.
  explicit tree_part(std::uint64_t first = 0);

  /// Appends leaves.
  void add(std::span<const double> leaves);
  /// Appends the leaves RN64(x * x).
  void add_squares(std::span<const double> values);
  /// Appends the squares of a matrix in host memory, of any format, in the order (row,
  /// column). Throws invalid_argument for views that convert() would refuse.
  void add_squares(const const_matrix_view& elements);
  /// Appends whole chunks by their nodes at level 12, as a device hands them over. Throws
  /// invalid_argument where count() is not a multiple of 4096.
  void add_chunks(std::span<const double> nodes);

  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t count() const { return chunks_ * chunk_leaves + tail_.count(); }

  /// The values of the subtrees in the order of their leaves. Which they are, first() and count()
  /// say: whole chunks from the left, each time the largest 2^n of them that begin at a multiple of
  /// 2^n chunks, and then what is left of the last chunk.
  [[nodiscard]] std::vector<double> subtrees() const;

 private:
  void add_chunk(double node);
  void fill_chunk(std::span<const double> values,
                  void (tree_sum::*append)(std::span<const double>));

  std::uint64_t first_;
  std::uint64_t chunks_ = 0;   // whole ones
  std::vector<double> nodes_;  // largest subtrees over them, in order
  std::vector<int> levels_;    // n of each
  tree_sum tail_;              // the chunk that is not whole
};

/// The sums of a list of tensors whose elements are spread over ranks.
struct sharded_sums {
  std::vector<double> of_tensors;
  std::vector<std::uint64_t> counts;  ///< leaves of each
  double total = 0;  ///< over the tree whose leaves are of_tensors, in list order (contract §6)
};

/// Puts the parts of all ranks together: the same bits on every rank, and the bits of tree_sum over
/// all leaves in one place, however they are cut.
///
/// parts[i] is this rank's part of tensor i; one without leaves says that the tensor is elsewhere.
/// Every rank brings as many parts in the same order. The parts of a tensor that have leaves lie on
/// the ranks in any order; together they are [0, n) without gap or overlap.
///
/// Two messages: 16 bytes, then per rank 16 bytes for a tensor and 8 for a subtree. Throws
/// rank_error on every rank where parts do not fit together, naming tensor and ranks,
/// environment_error as tree_sum does. A communicator on device memory is handed copies there, and
/// waited for; unsupported where no CUDA backend can run.
sharded_sums sum_shards(communicator& ranks, std::span<const tree_part> parts);

}  // namespace samebits
