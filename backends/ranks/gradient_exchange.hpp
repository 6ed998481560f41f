// Gradient exchange: the messages of one reduce_gradients() call, in host or device memory.
//
//   scales of e4m3 and e5m2:  amaxes -> all_reduce_max -> scales
//   for every message:        contributions -> all_to_all -> sums of the own share -> all_gather
//                             -> results
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/dispatch/calls/list.hpp"
#include "samebits/communicator.hpp"
#include "samebits/distributed.hpp"

namespace samebits::backends {

/// The elements [begin, end) of a list of tensors as one sequence; all have one format.
struct list_part {
  format_id format;
  std::int64_t begin;
  std::int64_t end;
};

/// The steps between the messages, in the memory of the communicator. Device steps are enqueued on
/// its stream. Messages are dense codes.
class reduction_steps {
 public:
  virtual ~reduction_steps() = default;

  /// Memory of all messages; the driver asks once.
  virtual std::byte* memory(std::size_t bytes) = 0;
  virtual void fill_with_zeros(std::byte* data, std::size_t bytes) = 0;
  /// The largest finite magnitude of every tensor, as the words that ranks exchange
  /// (numerics/sums/rank_sum.hpp).
  virtual std::span<std::uint32_t> amaxes() = 0;
  /// Computes the scales of all tensors from the maxima of the words over all ranks.
  virtual void scales() = 0;
  /// Converts elements to the communication dtype.
  virtual void contributions(const list_part& part, std::byte* communication) = 0;
  /// Sums over ranks. The contribution of rank k starts at code k * share of `communication`.
  /// `sums` are codes of the part's format.
  virtual void sums(const list_part& part, const std::byte* communication, std::int64_t share,
                    std::byte* sums) = 0;
  /// Replaces elements by the codes of their sums.
  virtual void results(const list_part& part, const std::byte* sums) = 0;
};

/// Exchanges all messages of a call with valid options.
void exchange_gradients(communicator& ranks, const list_data& list, const gradient_reduction& how,
                        reduction_steps& steps);

}  // namespace samebits::backends
