// Simulated ranks: a run of n ranks inside one process, for tests of code that uses a communicator.
//
//   testkit::simulate_ranks(4, [](communicator& ranks) {
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

/// An operation of a communicator.
enum class rank_operation : std::uint8_t { all_reduce_max, all_gather, all_to_all };

constexpr std::string_view name(rank_operation op) {
  switch (op) {
    case rank_operation::all_reduce_max: return "all_reduce_max";
    case rank_operation::all_gather: return "all_gather";
    case rank_operation::all_to_all: return "all_to_all";
  }
  return "?";
}

/// One completed operation of all ranks.
struct rank_call {
  rank_operation operation = rank_operation::all_reduce_max;
  std::size_t bytes = 0;  ///< bytes that each rank sent

  friend constexpr bool operator==(const rank_call&, const rank_call&) = default;
};

/// Thrown if the ranks' calls do not match, so that real ranks would hang or exchange wrong data:
/// different operations or sizes, or a rank that ended while others wait. The message lists each
/// rank's call.
class rank_calls_differ : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Simulates `count` ranks: runs body(ranks) once per rank, each on its own thread, over host
/// memory. Returns when all ranks are done, and never waits for ever.
///
/// An exception of a body ends its rank, and ends the other ranks at their next operation.
///
/// @param count  number of ranks, 1..1024
/// @param body  the program of a rank
/// @returns the operations of all ranks, in order
/// @throws invalid_argument if count is out of range.
/// @throws rank_calls_differ if the ranks' calls do not match.
/// @throws the exception of a body; of several, the one of the lowest rank.
std::vector<rank_call> simulate_ranks(int count, const std::function<void(communicator&)>& body);

}  // namespace samebits::testkit
