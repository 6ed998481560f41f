// Communicator: the three operations between ranks that samebits uses. The user implements them
// over MPI, NCCL or another network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "samebits/backend.hpp"

namespace samebits {

/// The ranks of a run, as seen by one rank.
///
/// All ranks call the same operations in the same order with buffers of the same size, as with MPI
/// and NCCL. Every buffer lies in the memory that space() names. In device memory an operation is
/// enqueued on stream() and may still run when the call returns. In host memory the operation is
/// complete when the call returns.
///
/// No operation computes in floating point, so no network can change a bit: maxima are of unsigned
/// integers, all else are copies. Exceptions of an implementation pass through.
///
///   operation        MPI                            NCCL
///   all_reduce_max   MPI_Allreduce, MPI_UINT32_T,   ncclAllReduce, ncclUint32,
///                    MPI_MAX, MPI_IN_PLACE          ncclMax
///   all_gather       MPI_Allgather, MPI_BYTE        ncclAllGather, ncclUint8
///   all_to_all       MPI_Alltoall, MPI_BYTE         ncclSend and ncclRecv in a group
class communicator {
 public:
  virtual ~communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;  ///< 0 .. size() - 1
  [[nodiscard]] virtual int size() const = 0;  ///< >= 1
  [[nodiscard]] virtual memory_space space() const { return memory_space::host; }
  /// Stream (cudaStream_t) of operations on device memory. Null: the default stream of the current
  /// device.
  [[nodiscard]] virtual void* stream() const { return nullptr; }

  /// Replaces each word by its maximum over all ranks, as unsigned integers.
  ///
  /// @param words  [n], the same n on every rank
  virtual void all_reduce_max(std::span<std::uint32_t> words) = 0;

  /// Gathers the message of every rank on every rank.
  ///
  /// @param sent  this rank's message
  /// @param received  the messages of ranks 0, 1, ...: size() * sent.size() bytes. Does not overlap
  ///   `sent`.
  virtual void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) = 0;

  /// Sends one block to each rank and receives one block from each rank.
  ///
  /// @param sent  size() equal blocks; block r goes to rank r
  /// @param received  sent.size() bytes; block r comes from rank r. Does not overlap `sent`.
  virtual void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) = 0;

 protected:
  communicator() = default;
  communicator(const communicator&) = default;
  communicator& operator=(const communicator&) = default;
};

/// A communicator of one rank in host memory.
class single_rank final : public communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  void all_reduce_max(std::span<std::uint32_t>) override {}
  void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) override {
    if (!sent.empty()) std::memcpy(received.data(), sent.data(), sent.size());
  }
  void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) override {
    all_gather(sent, received);
  }
};

}  // namespace samebits
