// Ranks: a run of n ranks inside one process, for tests of code that works on a communicator.
//
//   testkit::play_ranks(4, [](communicator& ranks) {
//     const rank_observation all = agree(ranks, {.seen = {.nonfinite = ranks.rank() == 2}});
//     if (!all.seen.nonfinite) throw std::logic_error("rank 2 was not heard");
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "samebits/communicator.hpp"

namespace samebits::testkit {

enum class rank_operation : std::uint8_t { all_reduce_max, all_gather, all_to_all };

constexpr std::string_view name(rank_operation op) {
  switch (op) {
    case rank_operation::all_reduce_max: return "all_reduce_max";
    case rank_operation::all_gather: return "all_gather";
    case rank_operation::all_to_all: return "all_to_all";
  }
  return "?";
}

/// One operation that all ranks took part in.
struct rank_call {
  rank_operation operation = rank_operation::all_reduce_max;
  std::size_t bytes = 0;  ///< what each rank sent

  friend constexpr bool operator==(const rank_call&, const rank_call&) = default;
};

/// The ranks' calls do not fit together, where real ranks would hang or exchange rubbish: another
/// operation or size, or a rank that ended while others wait. The message says what each rank did.
class rank_calls_differ : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Runs body(ranks) once for each of `count` ranks, each on a thread of its own, over host memory,
/// and returns when all are done; the operations they took part in, in order.
///
/// What a body throws ends its rank, and the others at their next operation; then play_ranks()
/// throws it, of several the lowest rank's. Where the ranks' calls do not fit together it throws
/// rank_calls_differ; it never waits for ever. Throws invalid_argument unless 1 <= count <= 1024.
std::vector<rank_call> play_ranks(int count, const std::function<void(communicator&)>& body);

}  // namespace samebits::testkit
