// Gradient reduction on CUDA: what it enqueues between a communicator's operations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/tensor_list/plan.hpp"
#include "backends/ranks/rank_functions.hpp"
#include "numerics/sums/rank_sum.hpp"
#include "numerics/tensor_list/plan.hpp"
#include "samebits/distributed.hpp"

namespace samebits::cuda {

/// The list as one sequence of elements; in device memory.
struct reduction_list {
  numerics::plan_tables plan;
  const std::int64_t* starts;    ///< [tensors]: the position of a tensor's first element
  numerics::tile_scale* scales;  ///< [tensors]; null where the wire has none
};

/// Elements [begin, end) of the list, of one format, and the chunks that hold them.
struct list_range {
  std::int64_t begin;
  std::int64_t end;
  std::uint64_t first_chunk;
  std::uint64_t end_chunk;
};

/// How a rank takes part.
struct reduction_rule {
  gradient_reduction how;  ///< random.stream is the rank's own
  int ranks;
  steps by;
};

/// Puts the largest finite magnitude of every tensor into words[tensors], which are zeros, as ranks
/// exchange it (numerics/sums/rank_sum.hpp).
void enqueue_amaxes(const reduction_list& list, std::uint32_t* words, steps by, void* stream);
/// list.scales from the largest words of all ranks.
void enqueue_scales(const reduction_list& list, const reduction_rule& rule,
                    const std::uint32_t* words, void* stream);
/// Rounds the elements of a range, codes of `own`, onto the wire: dense codes.
void enqueue_contributions(const reduction_list& list, const list_range& range,
                           const reduction_rule& rule, format_id own, std::byte* wire,
                           void* stream);
/// Sums the elements of a range, of which the contribution of rank k begins `share` codes times k
/// behind `wire`; dense codes of `own`.
void enqueue_sums(const reduction_list& list, const list_range& range, const reduction_rule& rule,
                  format_id own, const std::byte* wire, std::int64_t share, std::byte* sums,
                  void* stream);
/// Writes dense codes to the elements of a range.
void enqueue_results(const reduction_list& list, const list_range& range, format_id own,
                     const std::byte* results, void* stream);

extern const backends::device_rank_functions emulated_ranks;
extern const backends::device_rank_functions native_ranks;

}  // namespace samebits::cuda
