// Communicator: the three operations between ranks that samebits builds on, for a user to implement
// over MPI, NCCL or whatever connects the processes of a training run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "samebits/backend.hpp"

namespace samebits {

/// The ranks of a run, as one of them sees them.
///
/// All ranks call the same operations in the same order with buffers of the same size, as with MPI
/// and NCCL. Every buffer lies in the memory that space() names; in device memory an operation is
/// enqueued on stream() and need not be done when the call returns, and in host memory it is done.
/// None of them computes in floating point, so none can change a bit: maxima are of unsigned
/// integers, the rest are copies. What an implementation throws passes through.
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
  /// cudaStream_t of operations on device memory; null: the default stream of the current device.
  [[nodiscard]] virtual void* stream() const { return nullptr; }

  /// Replaces each word by the largest of all ranks, as unsigned integers.
  virtual void all_reduce_max(std::span<std::uint32_t> words) = 0;

  /// received = what rank 0 sent, then rank 1, ...; received.size() is size() * sent.size(). The
  /// two do not overlap.
  virtual void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) = 0;

  /// Of size() equal blocks, block r of `sent` goes to rank r, and block r of `received` is what
  /// rank r sent here; received.size() is sent.size(). The two do not overlap.
  virtual void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) = 0;

 protected:
  communicator() = default;
  communicator(const communicator&) = default;
  communicator& operator=(const communicator&) = default;
};

/// A run of one rank in host memory.
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
