// Shard layout: which rank holds which elements of a list of tensors, agreed on once, so that every
// step after it can take the norm of all shards together.
//
//   // This rank holds elements [begin[i], begin[i] + n) of gradient i, cut at multiples of 4096.
//   const samebits::tensor_list mine(shards);                       // in device memory
//   samebits::shard_layout layout(ranks, mine, begin);        // once, on every rank
//   samebits::device_loss_scaler scaler(mine, {}, {.max_norm = 1.0, .shards = layout});
//   ...
//   scaler.step(ranks);                                             // clips by the global norm
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "samebits/communicator.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits {

namespace backends {
struct shard_data;
}

/// How the elements of a list of tensors are spread over ranks. Immutable; copies share one
/// description, which does not refer to the communicator or to the tensors' memory.
class shard_layout {
 public:
  /// Of what this rank holds: of tensor i the elements of shards[i], which are the tensor's from
  /// element first[i] on, counted in the order (row, column). A tensor without elements here is
  /// elsewhere, and its first[i] is not read. Of a tensor that several ranks hold the same copy of,
  /// one lists the elements and the others none: what is listed counts once.
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

  /// The description as the backends read it.
  [[nodiscard]] const backends::shard_data& data() const { return *data_; }

 private:
  std::shared_ptr<const backends::shard_data> data_;
};

}  // namespace samebits
