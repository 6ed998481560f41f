// Gradients over several ranks: sums of gradients in a stated order with few bits to send, sums
// over shards, and layouts that say which rank holds which elements. Ranks exchange messages
// through a communicator (samebits/communicator.hpp).
//
//   // Every rank has the gradients of its own samples; afterwards all have their mean.
//   samebits::reduce_gradients(ranks, gradients,
//                              {.wire = samebits::format_id::bf16, .factor = 1.0f / ranks.size()});
//
//   // On the host, rank r holds elements [begin, end) of a gradient, cut at multiples of 4096.
//   samebits::tree_part squares(begin);
//   squares.add_squares(samebits::view_of(shard));
//   const double norm = std::sqrt(samebits::sum_shards(ranks, {&squares, 1}).total);
//
//   // On GPUs, this rank holds elements [begin[i], begin[i] + n) of gradient i.
//   const samebits::tensor_list mine(shards);            // in device memory
//   samebits::shard_layout layout(ranks, mine, begin);   // once, on every rank
//   samebits::device_loss_scaler scaler(mine, {}, {.max_norm = 1.0, .shards = layout});
//   scaler.step(ranks);                                  // clips by the norm of all shards
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "samebits/communicator.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"
#include "samebits/reductions.hpp"
#include "samebits/tensor_list.hpp"
#include "samebits/view.hpp"

namespace samebits {

namespace backends {
struct access;
struct shard_data;
}  // namespace backends

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

/// Puts the parts of all ranks together. Waits for the stream and the other ranks. Every rank gets
/// the bits of tree_sum over all leaves in one place, however they are cut.
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

/// How the elements of a list of tensors are spread over ranks. Immutable; copies share one
/// description, which does not refer to the communicator or to the tensors' memory.
class shard_layout {
 public:
  /// Waits for the stream and the other ranks. Of what this rank holds: of tensor i the elements of
  /// shards[i], which are the tensor's from element first[i] on, counted in the order (row,
  /// column). A tensor without elements here is elsewhere, and its first[i] is not read. Of a
  /// tensor that several ranks hold the same copy of, one lists the elements and the others none:
  /// what is listed counts once.
  ///
  /// Every rank calls it, with as many tensors in the same order, and waits. Two messages: 12
  /// bytes, then 16 bytes a tensor and rank. Throws, on every rank, naming the tensor: for shards
  /// not cut on chunk borders, where first[i] is not a multiple of 4096, invalid_argument on the
  /// rank whose it is and rank_error on the others; rank_error where shards overlap or leave a gap,
  /// or ranks list different numbers of tensors. Throws unsupported for a communicator on device
  /// memory where no CUDA backend can run, and what the communicator throws.
  shard_layout(communicator& ranks, const tensor_list& shards,
               std::span<const std::uint64_t> first);

  [[nodiscard]] int rank() const;   ///< this one
  [[nodiscard]] int ranks() const;  ///< of how many
  /// Tensors.
  [[nodiscard]] std::size_t size() const;
  /// Elements of a tensor on all ranks together.
  [[nodiscard]] std::uint64_t elements(std::size_t position) const;
  /// What a rank sends in each step, in bytes: the same on every rank.
  [[nodiscard]] std::size_t message_bytes() const;

 private:
  friend struct backends::access;

  std::shared_ptr<const backends::shard_data> data_;
};

// What becomes of one element x_k of ranks k = 0 .. n-1, each step one binary32 operation rounded
// to nearest even (contract §6):
//
//   wire               rank k sends                   total
//   fp32, fp16, bf16   q_k = cast(x_k)                t = q_0; t = RN(t + q_k) for k = 1 .. n-1
//   e4m3, e5m2         q_k = cast(y_k), y_k from x_k  t as above, then t = RN(t * s)
//                      and the tensor's scale s
//   The result is cast(RN(t * factor)) in the tensor's own format, to nearest even.
//
// The scale of e4m3 and e5m2 is one per tensor, the same on all ranks: that of the largest finite
// magnitude of all ranks by the rule `math` (samebits/core/scaling.hpp). Every cast is
// overflow::ieee: what does not fit, and what was not finite, arrives as Inf or NaN, for the loss
// scaler to see.

/// How gradients are summed over ranks; the same on every rank.
struct gradient_reduction {
  format_id wire = format_id::bf16;         ///< fp32, fp16, bf16, e4m3 or e5m2
  scale_math math = scale_math::pow2;       ///< of e4m3 and e5m2
  rounding round = rounding::nearest_even;  ///< onto the wire; or stochastic
  /// Read only by rounding::stochastic, without its pitch. Rank k draws from stream + k, at index
  /// offset + the element's position in the list: of the tensors before it and (row, column).
  random_stream random = {};
  float factor = 1.0f;  ///< of the total: 1 / n for the mean, times an inverse loss scale; finite
  /// Elements exchanged in one message at most, which bounds the memory that a call takes: at most
  /// 16 bytes for each. Never changes a bit. >= 1.
  std::int64_t elements_at_once = std::int64_t{1} << 22;
  /// Of gradients in device memory: cuda-native or cuda-emulated; empty: the default. Never changes
  /// a bit.
  std::string_view backend = {};
};

/// The gradients of reduce_gradients(): one view, several views in braces, a contiguous range of
/// views, or a tensor_list. A parameter type: it refers to the views and must not outlive the call.
///
/// Making a view_list checks nothing. reduce_gradients() checks the views itself, so that it can
/// tell all ranks of a refusal.
class view_list {
 public:
  // NOLINTBEGIN(google-explicit-constructor): callers write the views alone
  view_list(const matrix_view& one) : views_(&one, 1) {}
  view_list(std::initializer_list<matrix_view> views) : views_(views.begin(), views.size()) {}
  template <detail::contiguous Range>
  requires std::same_as<detail::element_of<const Range>, matrix_view>
  view_list(const Range& views) : views_(std::span(views)) {}
  view_list(const tensor_list& tensors);
  operator std::span<const matrix_view>() const { return views_; }
  // NOLINTEND(google-explicit-constructor)
  ~view_list() = default;
  view_list(const view_list&) = delete;
  view_list& operator=(const view_list&) = delete;

 private:
  std::vector<matrix_view> copies_;  // of a tensor_list's views
  std::span<const matrix_view> views_;
};

/// Replaces the gradients on every rank by their sum over all ranks. Waits for the stream, but not
/// for the sums. Every rank gets the same bits, whatever the network does, on any machine.
///
/// Matrices of fp32, fp16 or bf16, mixed as they come, in the memory that the communicator works
/// on; every rank lists the same shapes and formats in the same order; no element may be in two of
/// them. Each rank sends a contribution once (all_to_all) and its share of the sums once
/// (all_gather), whatever the number of ranks. With a single rank the gradient goes over the wire's
/// format all the same.
///
/// Throws, on every rank and before anything is written: invalid_argument on a rank whose own
/// arguments are refused, naming the position in the list or the option, and rank_error on the
/// others; rank_error where the ranks' lists or options differ; environment_error as tree_sum does.
///
/// In device memory everything is enqueued on ranks.stream(), with workspace from its pool, and the
/// gradients are there once that is done; only the arguments are compared, and the list described,
/// with a message of the host, for which the call waits on the stream: it cannot be captured into a
/// CUDA graph. Throws unsupported, before any message, where no CUDA backend can run, and
/// cuda_error.
void reduce_gradients(communicator& ranks, const view_list& gradients,
                      const gradient_reduction& how = {});

}  // namespace samebits
