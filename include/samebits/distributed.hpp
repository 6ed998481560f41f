// Gradients over several ranks: sums of gradients in a stated order in a small communication dtype,
// sums over shards, and layouts that say which rank holds which elements. Ranks exchange messages
// through a communicator (samebits/communicator.hpp).
//
//   // Before: every rank has the gradients of its own samples. After: every rank has the mean.
//   samebits::reduce_gradients(ranks, gradients,
//                              {.communication = samebits::format_id::bf16, .factor = 1.0f /
//                              ranks.size()});
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

/// Inputs per chunk. A chunk is the smallest whole subtree that a shard may hold (contract §6).
inline constexpr std::uint64_t chunk_inputs = 4096;

/// One rank's (or device's) part of a sum that is spread over several: the inputs
/// [first, first + count) of the tree of tree_sum.
///
/// Inputs are appended as to a tree_sum. The part keeps, and ranks exchange, the values of the
/// largest subtrees that lie in the part: at most 2 for each doubling of the number of chunks.
/// sum_shards() combines the parts of all ranks.
///
/// @throws environment_error from functions that compute, as in tree_sum.
class tree_part {
 public:
  /// Constructs an empty part that begins at input `first`.
  ///
  /// @throws invalid_argument unless `first` is a multiple of 4096, the first input of a chunk, and
  ///   below 2^62.
  explicit tree_part(std::uint64_t first = 0);

  /// Appends inputs.
  void add(std::span<const double> inputs);
  /// Appends the inputs RN64(x * x).
  void add_squares(std::span<const double> values);
  /// Appends the squares of the elements of a matrix in the order (row, column).
  ///
  /// @param elements  [rows, cols], any format, host memory
  /// @throws invalid_argument if convert() would refuse the view.
  void add_squares(const const_matrix_view& elements);
  /// Appends whole chunks by their partial sums, the values at level 12 of the tree, as a device
  /// computes them.
  ///
  /// @throws invalid_argument if count() is not a multiple of 4096.
  void add_chunks(std::span<const double> partial_sums);
  /// Appends `chunks` whole chunks by the value of their subtree: the value() of a tree_sum over
  /// their inputs alone, as sum_of_squares() computes it on any memory.
  ///
  /// @param chunks  a power of two, up to 2^49
  /// @param value  the sum over the 4096 * chunks inputs
  /// @throws invalid_argument unless `chunks` is such a power, and first() + count() a multiple of
  ///   4096 * chunks.
  void add_subtree(std::uint64_t chunks, double value);

  /// Returns the index of the first input.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  /// Returns the number of inputs so far.
  [[nodiscard]] std::uint64_t count() const { return chunks_ * chunk_inputs + tail_.count(); }

  /// Returns the values of the largest subtrees in the part, in the order of their inputs.
  ///
  /// first() and count() determine the subtrees. From the left, each subtree covers 2^n whole
  /// chunks that begin at a multiple of 2^n chunks, with the largest n possible. The last subtree
  /// is the chunk that is not full, if there is one.
  [[nodiscard]] std::vector<double> subtrees() const;

 private:
  void add_partial_sum(int level, double partial_sum);
  void fill_chunk(std::span<const double> values,
                  void (tree_sum::*append)(std::span<const double>));

  std::uint64_t first_;
  std::uint64_t chunks_ = 0;  // whole chunks
  std::vector<double>
      partial_sums_;         // values of the largest subtrees over the whole chunks, in order
  std::vector<int> levels_;  // n of each subtree of 2^n chunks
  tree_sum tail_;            // the chunk that is not full
};

/// Sums of tensors whose elements are spread over ranks.
struct sharded_sums {
  std::vector<double> of_tensors;
  std::vector<std::uint64_t> counts;  ///< number of inputs of each tensor
  double total = 0;  ///< over the tree with inputs of_tensors, in list order (contract §6)
};

/// Combines the parts of all ranks. Every rank gets the bits of tree_sum over all inputs in one
/// place, however the inputs are cut.
///
/// Two messages: 16 bytes, then per rank 16 bytes for a tensor and 8 for a subtree.
///
/// @param ranks  communicator; every rank calls sum_shards()
/// @param parts  parts[i] is this rank's part of tensor i; a part without inputs means that other
///   ranks hold the tensor. Every rank passes equally many parts in the same order. The non-empty
///   parts of a tensor may lie on the ranks in any order. Together they are [0, n) without gap or
///   overlap.
/// @returns sums per tensor and in total
/// @throws rank_error, on every rank, naming tensor and ranks, if parts do not fit together.
/// @throws environment_error as tree_sum does.
/// @throws unsupported if the communicator works on device memory and no CUDA backend can run.
/// @note Waits for the stream and the other ranks. A communicator on device memory gets copies of
///   the messages there.
sharded_sums sum_shards(communicator& ranks, std::span<const tree_part> parts);

/// Layout of a list of tensors whose elements are spread over ranks. Immutable. Copies share one
/// description, which does not refer to the communicator or to the tensors' memory.
class shard_layout {
 public:
  /// Exchanges the layouts of all ranks and checks that they fit together. Two messages: 12 bytes,
  /// then 16 bytes per tensor and rank.
  ///
  /// @param ranks  communicator; every rank calls the constructor
  /// @param shards  shards[i] holds this rank's elements of tensor i. A shard without elements
  ///   means that other ranks hold the tensor. Every rank lists equally many tensors in the same
  ///   order. If several ranks hold copies of a tensor, one rank lists its elements and the others
  ///   list none.
  /// @param first  first[i] is the index in tensor i of the first element of shards[i], counted in
  ///   the order (row, column). A multiple of 4096; ignored if shards[i] has no elements.
  /// @throws invalid_argument, naming the tensor, on a rank whose first[i] is not a multiple of
  ///   4096. The other ranks throw rank_error.
  /// @throws rank_error, on every rank, naming the tensor, if shards overlap or leave a gap, or if
  ///   the ranks list different numbers of tensors.
  /// @throws unsupported if the communicator works on device memory and no CUDA backend can run.
  /// @throws what the communicator throws.
  /// @note Waits for the stream and the other ranks.
  shard_layout(communicator& ranks, const tensor_list& shards,
               std::span<const std::uint64_t> first);

  [[nodiscard]] int rank() const;   ///< index of this rank
  [[nodiscard]] int ranks() const;  ///< number of ranks
  /// Returns the number of tensors.
  [[nodiscard]] std::size_t size() const;
  /// Returns the number of elements of a tensor on all ranks together.
  [[nodiscard]] std::uint64_t elements(std::size_t position) const;
  /// Returns the bytes that a rank sends in each step; the same on every rank.
  [[nodiscard]] std::size_t message_bytes() const;

 private:
  friend struct backends::access;

  std::shared_ptr<const backends::shard_data> data_;
};

// How reduce_gradients() sums one element x_k of ranks k = 0 .. n-1. Each step is one binary32
// operation rounded to nearest even (contract §6). `communication` is the communication dtype:
//
//   communication      rank k sends                   total
//   fp32, fp16, bf16   q_k = cast(x_k)                t = q_0; t = RN(t + q_k) for k = 1 .. n-1
//   e4m3, e5m2         q_k = cast(y_k), y_k from x_k  t as above, then t = RN(t * s)
//                      and the tensor's scale s
// The result is cast(RN(t * factor)) in the tensor's own format, to nearest even.
//
// With e4m3 and e5m2, all ranks use one scale per tensor. The scale rule `scale`
// (samebits/core/scaling.hpp) computes the scale from the max finite magnitude on all ranks. Every
// cast is overflow::ieee: an element that overflows or is not finite arrives as Inf or NaN, so the
// loss scaler can detect it.

/// Options of reduce_gradients(); the same on every rank.
struct gradient_reduction {
  format_id communication = format_id::bf16;  ///< communication dtype: fp32, fp16, bf16, e4m3, e5m2
  scale_rule scale = scale_rule::pow2;        ///< scale rule of e4m3 and e5m2
  samebits::rounding rounding =
      samebits::rounding::nearest_even;  ///< into `communication`: this or stochastic
  /// Read only by rounding::stochastic; the pitch is ignored. Rank k uses the random stream
  /// `stream` + k. The index of an element is offset + its position in the list: the tensors
  /// before, then (row, column).
  random_stream random = {};
  float factor = 1.0f;  ///< of the total; finite. 1 / n for the mean, times an inverse loss scale
  /// Max number of elements in one message; >= 1. The number bounds the memory of a call: at most
  /// 16 bytes per element. It never changes a bit.
  std::int64_t elements_at_once = std::int64_t{1} << 22;
  /// Backend for gradients in device memory: cuda-native or cuda-emulated. Empty: the default.
  /// Never changes a bit.
  std::string_view backend = {};
};

/// Parameter type of reduce_gradients(): one view, several views in braces, a contiguous range of
/// views, or a tensor_list. A view_list refers to the views and must not outlive the call.
///
/// Constructing a view_list checks nothing. reduce_gradients() checks the views itself, so that it
/// can report a refusal to all ranks.
class view_list {
 public:
  // NOLINTBEGIN(google-explicit-constructor): callers write the views alone
  view_list(const matrix_view& one) : views_(&one, 1) {}
  view_list(std::initializer_list<matrix_view> views) : views_(views.begin(), views.size()) {}
  template <detail::contiguous Range>
  requires std::same_as<detail::element_of<const Range>, matrix_view> view_list(const Range& views)
      : views_(std::span(views)) {}
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

/// Replaces the gradients on every rank by their sum over all ranks. Every rank gets the same bits,
/// on any network and any machine.
///
/// Each rank sends its contribution once (all_to_all) and its share of the sums once (all_gather),
/// whatever the number of ranks. With a single rank the gradients are converted to the
/// communication dtype as well.
///
/// @param ranks  communicator; every rank calls reduce_gradients()
/// @param gradients  matrices in fp32, fp16 or bf16, mixed in any order, in the memory that the
///   communicator works on. Every rank lists the same shapes and formats in the same order. No
///   element may be in two matrices.
/// @param how  communication dtype, rounding and factor
/// @throws invalid_argument on a rank whose own arguments are refused, naming the position in the
///   list or the option. The other ranks throw rank_error.
/// @throws rank_error, on every rank, if the ranks' lists or options differ.
/// @throws environment_error as tree_sum does.
/// @throws unsupported, before any message, if the communicator works on device memory and no CUDA
///   backend can run.
/// @throws cuda_error
/// @note invalid_argument, rank_error and environment_error are thrown on every rank, before
///   anything is written.
/// @note Device memory: the sums are enqueued on ranks.stream(), with workspace from its memory
///   pool. The call waits for the stream only while the ranks compare their arguments by a message
///   of the host and the list is described. It cannot be captured into a CUDA graph.
void reduce_gradients(communicator& ranks, const view_list& gradients,
                      const gradient_reduction& how = {});

}  // namespace samebits
