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
      if (rank() != 0 || words.empty()) return;
      words_of_ranks all = {};
      for (int r = 0; r < size(); ++r)
        all.of[r] = reinterpret_cast<std::uint32_t*>(posts[r].received);
      largest_kernel<<<8, 128, 0, own()>>>(all, size(), words.size());
      check_cuda(cudaGetLastError(), "largest_kernel");
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

void enqueue_on_ranks(const device_streams& streams, int count,
                      const std::function<void(communicator&)>& body) {
  if (count > max_device_ranks) throw std::logic_error("more ranks than streams");
  testkit::simulate_ranks(count, [&](communicator& host) {
    device_rank self(streams, host);
    body(self);
  });
}

void simulate_device_ranks(const device_streams& streams, int count,
                           const std::function<void(communicator&)>& body) {
  enqueue_on_ranks(streams, count, body);
  streams.synchronize();
}

}  // namespace samebits::support
