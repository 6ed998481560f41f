// Ranks on device memory, simulated in one process.
#include "device/device_ranks.hpp"

#include <cuda_runtime.h>

#include <array>
#include <functional>
#include <stdexcept>

#include "device/device_copy.hpp"
#include "samebits/testkit/ranks.hpp"

namespace samebits::support {
namespace {

/// The words of each rank.
struct words_of_ranks {
  std::uint32_t* of[max_device_ranks];
};

__global__ void largest_kernel(const words_of_ranks words, const int ranks,
                               const std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    std::uint32_t maximum = 0;
    for (int rank = 0; rank < ranks; ++rank) maximum = max(maximum, words.of[rank][i]);
    for (int rank = 0; rank < ranks; ++rank) words.of[rank][i] = maximum;
  }
}

void enqueue_largest(const words_of_ranks& words, int ranks, std::size_t count,
                     cudaStream_t stream) {
  if (count == 0) return;
  largest_kernel<<<8, 128, 0, stream>>>(words, ranks, count);
  check_cuda(cudaGetLastError(), "largest_kernel");
}

/// What a rank brings to an operation.
struct post {
  std::uint64_t operation;
  std::uint64_t bytes;
  const std::byte* sent;
  std::byte* received;
};

/// A rank whose threads meet on the host, by another communicator, and whose streams wait for each
/// other.
class device_rank final : public communicator {
 public:
  device_rank(const device_streams& streams, communicator& host) : streams_(streams), host_(host) {}

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  [[nodiscard]] memory_space space() const override { return memory_space::device; }
  [[nodiscard]] void* stream() const override { return own(); }

  void all_reduce_max(std::span<std::uint32_t> words) override {
    auto* const data = reinterpret_cast<std::byte*>(words.data());
    meet({0, words.size_bytes(), data, data}, [&](const auto& posts) {
      if (rank() != 0) return;
      words_of_ranks all = {};
      for (int r = 0; r < size(); ++r)
        all.of[r] = reinterpret_cast<std::uint32_t*>(posts[r].received);
      enqueue_largest(all, size(), words.size(), own());
    });
  }
  void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) override {
    if (received.size() != sent.size() * static_cast<std::size_t>(size())) {
      throw std::logic_error("all_gather: sizes");
    }
    meet({1, sent.size(), sent.data(), received.data()}, [&](const auto& posts) {
      for (int r = 0; r < size(); ++r) copy(received, posts[r].sent, r, sent.size());
    });
  }
  void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) override {
    const std::size_t block = sent.size() / static_cast<std::size_t>(size());
    if (received.size() != sent.size() || block * static_cast<std::size_t>(size()) != sent.size()) {
      throw std::logic_error("all_to_all: sizes");
    }
    meet({2, sent.size(), sent.data(), received.data()}, [&](const auto& posts) {
      const std::size_t mine = block * static_cast<std::size_t>(rank());
      for (int r = 0; r < size(); ++r) copy(received, posts[r].sent + mine, r, block);
    });
  }

 private:
  [[nodiscard]] cudaStream_t own() const { return streams_.stream(rank()); }

  /// Block r of `received` from another rank's memory.
  void copy(std::span<std::byte> received, const std::byte* from, int r, std::size_t bytes) const {
    if (bytes == 0) return;
    check_cuda(cudaMemcpyAsync(received.data() + static_cast<std::size_t>(r) * bytes, from, bytes,
                               cudaMemcpyDeviceToDevice, own()),
               "copy between ranks");
  }

  /// Calls work(posts) when all ranks' buffers are ready for the stream, and keeps the streams from
  /// what follows until all are done.
  template <class Work>
  void meet(const post& mine, const Work& work) {
    streams_.mark(rank(), false);
    std::array<post, max_device_ranks> posts = {};
    const std::span<post> all(posts.data(), static_cast<std::size_t>(size()));
    host_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(all));
    for (const post& other : all) {
      if (other.operation != mine.operation || other.bytes != mine.bytes) {
        throw testkit::rank_calls_differ("operations on device memory differ");
      }
    }
    streams_.wait_for_all(rank(), size(), false);
    work(posts);
    streams_.mark(rank(), true);
    std::array<std::byte, max_device_ranks> met = {};
    host_.all_gather(std::span(met).first(1),
                     std::span(marks_).first(static_cast<std::size_t>(size())));
    streams_.wait_for_all(rank(), size(), true);
  }

  const device_streams& streams_;
  communicator& host_;
  std::array<std::byte, max_device_ranks> marks_ = {};
};

}  // namespace

device_streams::device_streams() {
  for (int rank = 0; rank < max_device_ranks; ++rank) {
    check_cuda(cudaStreamCreateWithFlags(&streams_[rank], cudaStreamNonBlocking), "stream");
    check_cuda(cudaEventCreateWithFlags(&before_[rank], cudaEventDisableTiming), "event");
    check_cuda(cudaEventCreateWithFlags(&after_[rank], cudaEventDisableTiming), "event");
  }
}

device_streams::~device_streams() {
  for (int rank = 0; rank < max_device_ranks; ++rank) {
    cudaEventDestroy(before_[rank]);
    cudaEventDestroy(after_[rank]);
    cudaStreamDestroy(streams_[rank]);
  }
}

void device_streams::mark(int rank, bool after) const {
  check_cuda(cudaEventRecord(after ? after_[rank] : before_[rank], streams_[rank]), "mark");
}

void device_streams::wait_for_all(int rank, int count, bool after) const {
  for (int other = 0; other < count; ++other) {
    if (other == rank) continue;
    check_cuda(cudaStreamWaitEvent(streams_[rank], after ? after_[other] : before_[other], 0),
               "wait for another rank");
  }
}

void device_streams::synchronize() const {
  for (const cudaStream_t stream : streams_) {
    check_cuda(cudaStreamSynchronize(stream), "work of the ranks");
  }
}

void simulate_device_ranks(const device_streams& streams, int count,
                           const std::function<void(communicator&)>& body) {
  if (count > max_device_ranks) throw std::logic_error("more ranks than streams");
  testkit::simulate_ranks(count, [&](communicator& host) {
    device_rank self(streams, host);
    body(self);
  });
  streams.synchronize();
}

class lockstep_ranks::member final : public communicator {
 public:
  member(lockstep_ranks& all, const device_streams& streams, int rank, int size)
      : all_(all), streams_(streams), rank_(rank), size_(size) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] memory_space space() const override { return memory_space::device; }
  [[nodiscard]] void* stream() const override { return streams_.stream(rank_); }

  void all_reduce_max(std::span<std::uint32_t> words) override {
    words_ = words;
    meet([&](cudaStream_t on) {
      words_of_ranks every = {};
      for (int r = 0; r < size_; ++r) every.of[r] = member_at(r).words_.data();
      enqueue_largest(every, size_, words.size(), on);
    });
  }
  void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) override {
    if (received.size() != sent.size() * static_cast<std::size_t>(size_)) {
      throw std::logic_error("all_gather: sizes");
    }
    sent_ = sent;
    received_ = received;
    meet([&](cudaStream_t on) {
      for (int to = 0; to < size_; ++to) {
        for (int from = 0; from < size_; ++from) {
          check_cuda(
              cudaMemcpyAsync(
                  member_at(to).received_.data() + static_cast<std::size_t>(from) * sent.size(),
                  member_at(from).sent_.data(), sent.size(), cudaMemcpyDeviceToDevice, on),
              "copy between ranks");
        }
      }
    });
  }
  void all_to_all(std::span<const std::byte>, std::span<std::byte>) override {
    throw std::logic_error("lockstep_ranks: all_to_all");
  }

 private:
  [[nodiscard]] member& member_at(int rank) const {
    return *all_.members_[static_cast<std::size_t>(rank)];
  }

  /// By the last rank: calls work(stream of rank 0) between what all have enqueued and will.
  template <class Work>
  void meet(const Work& work) {
    streams_.mark(rank_, false);
    if (rank_ + 1 < size_) return;
    streams_.wait_for_all(0, size_, false);
    work(streams_.stream(0));
    streams_.mark(0, true);
    for (int r = 1; r < size_; ++r) streams_.wait_for_all(r, 1, true);
  }

  lockstep_ranks& all_;
  const device_streams& streams_;
  int rank_;
  int size_;
  std::span<std::uint32_t> words_;
  std::span<const std::byte> sent_;
  std::span<std::byte> received_;
};

lockstep_ranks::lockstep_ranks(const device_streams& streams, int count) {
  for (int rank = 0; rank < count; ++rank) {
    members_.push_back(std::make_unique<member>(*this, streams, rank, count));
  }
}

lockstep_ranks::~lockstep_ranks() = default;

communicator& lockstep_ranks::operator[](int rank) const {
  return *members_[static_cast<std::size_t>(rank)];
}

}  // namespace samebits::support
