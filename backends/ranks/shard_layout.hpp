// A shard layout as backends read it: what this rank sends, and where the nodes of all ranks go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numerics/loss_scale/agreement.hpp"
#include "numerics/sums/shard_tree.hpp"
#include "samebits/distributed.hpp"

namespace samebits::backends {

/// A node that this rank forms of its own chunks.
struct own_node {
  std::uint64_t first_chunk;  ///< in the numbering of this rank's plan
  std::uint32_t chunks;       ///< 1 .. slot_chunks
  std::uint32_t tensor;
};

/// A rank's message is an agreement_message and the values of its nodes, binary64 bits, filled up
/// to message_words words of 8 bytes.
struct shard_data {
  static constexpr std::size_t first_value = sizeof(numerics::agreement_message) / 8;

  int rank = 0;
  int ranks = 1;
  std::size_t message_words = first_value;
  std::uint32_t fingerprint = 0;      ///< of which rank holds what; the same on every rank
  std::vector<std::uint64_t> here;    ///< elements on this rank, by tensor
  std::vector<std::uint64_t> counts;  ///< elements on all ranks, by tensor
  std::vector<own_node> own;          ///< in the order of the message
  /// Of all ranks, in the order of tensors and chunks.
  std::vector<numerics::received_node> nodes;
  std::vector<std::uint64_t> node_of_slot;    ///< [slots + 1]: its first one
  std::vector<std::uint64_t> slot_of_tensor;  ///< [tensors + 1]: its first one
};

}  // namespace samebits::backends
