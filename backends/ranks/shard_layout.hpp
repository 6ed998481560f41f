// Shard layout as backends read it: the partial sums that this rank sends, and the positions of
// those of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numerics/loss_scale/agreement.hpp"
#include "numerics/sums/shard_tree.hpp"
#include "samebits/distributed.hpp"

namespace samebits::backends {

/// A partial sum that this rank computes from its own chunks.
struct own_sum {
  std::uint64_t first_chunk;  ///< chunk number in this rank's tensor list
  std::uint32_t chunks;       ///< 1 .. slot_chunks
  std::uint32_t tensor;
};

/// The tables of a shard layout. A rank's message is an agreement_message and the values of its
/// partial sums (binary64 bits), padded to message_words words of 8 bytes.
struct shard_data {
  static constexpr std::size_t first_value = sizeof(numerics::agreement_message) / 8;

  int rank = 0;
  int ranks = 1;
  std::size_t message_words = first_value;
  std::uint32_t fingerprint = 0;      ///< of the distribution of all tensors; equal on every rank
  std::vector<std::uint64_t> here;    ///< elements of each tensor on this rank
  std::vector<std::uint64_t> counts;  ///< elements of each tensor on all ranks
  std::vector<own_sum> own;           ///< in message order
  /// The partial sums of all ranks, in the order of tensors and chunks.
  std::vector<numerics::received_sum> partial_sums;
  /// [slots + 1]: index of the first partial sum of each slot
  std::vector<std::uint64_t> partial_sum_of_slot;
  /// [tensors + 1]: index of the first slot of each tensor
  std::vector<std::uint64_t> slot_of_tensor;
};

}  // namespace samebits::backends
