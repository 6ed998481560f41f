// Gradient reduction on CUDA: the kernels between the operations of a communicator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/tensor_list/list.hpp"
#include "backends/ranks/rank_functions.hpp"
#include "numerics/sums/rank_sum.hpp"
#include "numerics/tensor_list/list.hpp"
#include "samebits/distributed.hpp"

namespace samebits::cuda {

/// reduction_list: a list of tensors as one sequence of elements; pointers are to device memory.
struct reduction_list {
  numerics::tensor_tables tables;
  const std::int64_t* starts;    ///< [tensors]: position of the tensor's first element
  numerics::tile_scale* scales;  ///< [tensors]; null if the communication dtype has no scale
};

/// Elements [begin, end) of the list, all of one format, and the chunks that hold them.
struct list_range {
  std::int64_t begin;
  std::int64_t end;
  std::uint64_t first_chunk;
  std::uint64_t end_chunk;
};

/// The options of the reduction, as one rank executes them.
struct reduction_rule {
  gradient_reduction how;  ///< random.stream is already this rank's
  int ranks;
  arithmetic by;
};

/// Enqueues the largest finite magnitude of every tensor, as the words that ranks exchange
/// (numerics/sums/rank_sum.hpp). words[tensors] must start as zeros.
void enqueue_amaxes(const reduction_list& list, std::uint32_t* words, arithmetic by, void* stream);
/// Enqueues list.scales from the maxima of `words` over all ranks.
void enqueue_scales(const reduction_list& list, const reduction_rule& rule,
                    const std::uint32_t* words, void* stream);
/// Enqueues the conversion of a range from format `own` to the communication dtype.
/// `communication`: dense codes.
void enqueue_contributions(const reduction_list& list, const list_range& range,
                           const reduction_rule& rule, format_id own, std::byte* communication,
                           void* stream);
/// Enqueues the sum over ranks of the elements of a range. The contribution of rank k starts at
/// code k * share of `communication`. `sums`: dense codes of format `own`.
void enqueue_sums(const reduction_list& list, const list_range& range, const reduction_rule& rule,
                  format_id own, const std::byte* communication, std::int64_t share,
                  std::byte* sums, void* stream);
/// Enqueues the copy of dense codes to the elements of a range.
void enqueue_results(const reduction_list& list, const list_range& range, format_id own,
                     const std::byte* results, void* stream);

/// The rank functions of cuda-emulated and cuda-native.
extern const backends::device_rank_functions emulated_ranks;
extern const backends::device_rank_functions native_ranks;

}  // namespace samebits::cuda
