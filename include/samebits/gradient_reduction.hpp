// Gradient reduction: sums of gradients over ranks in a stated order, with few bits on the wire.
//
//   // Every rank has the gradients of its own samples; afterwards all have their mean.
//   samebits::reduce_gradients(ranks, gradients,
//                              {.wire = samebits::format_id::bf16, .factor = 1.0f / ranks.size()});
//
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
// magnitude of all ranks by the maths of samebits/core/scaling.hpp. Every cast is overflow::ieee:
// what does not fit, and what was not finite, arrives as Inf or NaN, for the loss scaler to see.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

#include "samebits/communicator.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"
#include "samebits/tensor_list.hpp"
#include "samebits/view.hpp"

namespace samebits {

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
  template <std::ranges::contiguous_range Range>
  requires std::same_as<std::ranges::range_value_t<Range>, matrix_view> view_list(
      const Range& views)
      : views_(std::ranges::data(views), std::ranges::size(views)) {}
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

/// Replaces the gradients on every rank by their sum over all ranks: the same bits on every rank,
/// whatever the network does, and those of any other machine.
///
/// Matrices of fp32, fp16 or bf16, mixed as they come, in the memory that the communicator works
/// on; every rank lists the same shapes and formats in the same order; no element may be in two of
/// them. Each rank sends a contribution once
/// (all_to_all) and its share of the sums once (all_gather), whatever the number of ranks. With a
/// single rank the gradient goes over the wire's format all the same.
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
