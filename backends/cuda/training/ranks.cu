// Functions of the CUDA backends that use a communicator on device memory: gradient reduction, and
// messages of words in host memory.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/training/gradient_reduction.hpp"
#include "backends/dispatch/calls/list.hpp"

namespace samebits::cuda {
namespace {

cudaStream_t stream_of(const communicator& ranks) {
  return static_cast<cudaStream_t>(ranks.stream());
}

/// Enqueues a copy to the device.
void upload(std::byte* device, const void* host, std::size_t bytes, cudaStream_t stream) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream),
        "copy of a message to the device");
}

/// Enqueues a copy to the host.
void download(void* host, const std::byte* device, std::size_t bytes, cudaStream_t stream) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream),
        "copy of a message from the device");
}

/// Waits for the stream.
void finish(cudaStream_t stream) { check(cudaStreamSynchronize(stream), "work on the device"); }

/// Replaces words in host memory by their maxima over all ranks. Waits for the stream.
void all_reduce_max(communicator& ranks, std::span<std::uint32_t> words) {
  if (words.empty()) return;
  const cudaStream_t on = stream_of(ranks);
  const workspace room(nullptr, words.size_bytes(), on, "message: workspace");
  upload(room.data(), words.data(), words.size_bytes(), on);
  ranks.all_reduce_max({reinterpret_cast<std::uint32_t*>(room.data()), words.size()});
  download(words.data(), room.data(), words.size_bytes(), on);
  finish(on);
}

/// Gathers the bytes of all ranks in host memory. Waits for the stream.
void all_gather(communicator& ranks, std::span<const std::byte> sent,
                std::span<std::byte> received) {
  if (sent.empty()) return;
  const cudaStream_t on = stream_of(ranks);
  const workspace from(nullptr, sent.size(), on, "message: workspace");
  const workspace to(nullptr, received.size(), on, "message: workspace");
  upload(from.data(), sent.data(), sent.size(), on);
  ranks.all_gather({from.data(), sent.size()}, {to.data(), received.size()});
  download(received.data(), to.data(), received.size(), on);
  finish(on);
}

/// Divides a workspace into arrays aligned to 256 bytes. Without a workspace, only adds up the
/// sizes.
class layout {
 public:
  explicit layout(std::byte* first = nullptr) : first_(first) {}
  template <class T>
  T* take(std::size_t count) {
    T* const part = first_ == nullptr ? nullptr : reinterpret_cast<T*>(first_ + bytes_);
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return part;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::byte* first_;
  std::size_t bytes_ = 0;
};

/// The tables of a list of tensors in one allocation. rows, row_of_chunk and starts are copied from
/// the host.
struct list_tables {
  numerics::list_row* rows;
  std::uint32_t* row_of_chunk;
  std::int64_t* starts;
  numerics::tile_scale* scales;
  std::uint32_t* words;
  std::size_t bytes;

  list_tables(std::byte* memory, const backends::list_data& list) {
    const std::size_t tensors = list.rows.size();
    layout parts(memory);
    rows = parts.take<numerics::list_row>(tensors);
    row_of_chunk = parts.take<std::uint32_t>(list.row_of_chunk.size());
    starts = parts.take<std::int64_t>(tensors);
    scales = parts.take<numerics::tile_scale>(tensors);
    words = parts.take<std::uint32_t>(tensors);
    bytes = parts.bytes();
  }
};

/// Buffers of one exchange, in one allocation. Every rank's share has the same number of elements;
/// the last shares are padded with zeros.
struct exchange_buffers {
  std::byte* sent;      ///< this rank's elements in the communication dtype, by share
  std::byte* received;  ///< this rank's share from each rank
  std::byte* sums;      ///< sums of this rank's share
  std::byte* results;   ///< sums of all shares
  std::size_t bytes;

  exchange_buffers(std::byte* memory, std::size_t elements, std::size_t communication_bytes,
                   std::size_t own_bytes) {
    layout parts(memory);
    sent = parts.take<std::byte>(elements * communication_bytes);
    received = parts.take<std::byte>(elements * communication_bytes);
    sums = parts.take<std::byte>(elements * own_bytes);
    results = parts.take<std::byte>(elements * own_bytes);
    bytes = parts.bytes();
  }
};

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

/// One call of reduce_gradients().
///
/// for every message:  contributions -> all_to_all -> sums of own share -> all_gather -> results
class reduction {
 public:
  reduction(communicator& ranks, const backends::list_data& list, const gradient_reduction& how,
            arithmetic by)
      : ranks_(ranks),
        on_(stream_of(ranks)),
        host_(list),
        rule_{how, ranks.size(), by},
        memory_(nullptr, list_tables(nullptr, list).bytes, on_, "reduce_gradients: workspace"),
        tables_(memory_.data(), list),
        list_{{tables_.rows, tables_.row_of_chunk, list.rows.size(), list.row_of_chunk.size()},
              tables_.starts,
              storage_bytes(how.communication) == 1 ? tables_.scales : nullptr},
        communication_bytes_(storage_bytes(how.communication)) {
    rule_.how.random.stream += static_cast<std::uint64_t>(ranks.rank());
    for (const numerics::list_row& row : list.rows) starts_.push_back(starts_.back() + row.count);
  }

  void run() {
    upload_tables();
    if (list_.scales != nullptr) share_scales();
    std::int64_t maximum = 0;
    for_each_message([&](format_id, std::int64_t begin, std::int64_t end) {
      maximum = std::max(maximum, end - begin);
    });
    const std::size_t elements = size_of(share_of(maximum) * ranks_.size());
    const std::size_t bytes =
        exchange_buffers(nullptr, elements, size_of(communication_bytes_), max_own_bytes()).bytes;
    const workspace room(nullptr, bytes, on_, "reduce_gradients: workspace");
    const exchange_buffers buffers(room.data(), elements, size_of(communication_bytes_),
                                   max_own_bytes());
    for_each_message([&](format_id own, std::int64_t begin, std::int64_t end) {
      exchange(own, begin, end, buffers);
    });
  }

 private:
  /// Calls f(format, begin, end) for every message. Consecutive tensors of one format share
  /// messages of at most elements_at_once elements.
  template <class Function>
  void for_each_message(const Function& f) const {
    const auto& rows = host_.rows;
    for (std::size_t first = 0; first < rows.size();) {
      std::size_t last = first + 1;
      while (last < rows.size() && rows[last].format == rows[first].format) ++last;
      const std::int64_t end = starts_[last];
      for (std::int64_t begin = starts_[first]; begin < end;) {
        const std::int64_t count = std::min(rule_.how.elements_at_once, end - begin);
        f(rows[first].format, begin, begin + count);
        begin += count;
      }
      first = last;
    }
  }

  /// Copies the tables to the device, and waits: the caller may free the tables after this call.
  void upload_tables() const {
    const auto copy = [&](auto* device, const auto& host, std::size_t count) {
      upload(reinterpret_cast<std::byte*>(device), host.data(), count * sizeof(host[0]), on_);
    };
    copy(tables_.rows, host_.rows, host_.rows.size());
    copy(tables_.row_of_chunk, host_.row_of_chunk, host_.row_of_chunk.size());
    copy(tables_.starts, starts_, host_.rows.size());
    finish(on_);
  }

  /// Finds the scale of each tensor from its amax over all ranks.
  void share_scales() {
    const std::size_t tensors = host_.rows.size();
    check(cudaMemsetAsync(tables_.words, 0, tensors * sizeof(std::uint32_t), on_),
          "clear the largest magnitudes");
    enqueue_amaxes(list_, tables_.words, rule_.by, on_);
    ranks_.all_reduce_max({tables_.words, tensors});
    enqueue_scales(list_, rule_, tables_.words, on_);
  }

  /// Reduces the elements [begin, end) with one message in each direction. Rank k sums the k-th
  /// share.
  void exchange(format_id own, std::int64_t begin, std::int64_t end,
                const exchange_buffers& buffers) {
    const std::int64_t share = share_of(end - begin);
    const std::int64_t shares = share * ranks_.size();
    const std::int64_t own_bytes = storage_bytes(own);
    enqueue_contributions(list_, range(begin, end), rule_, own, buffers.sent, on_);
    fill_up(buffers.sent, (end - begin) * communication_bytes_, shares * communication_bytes_);
    const std::size_t communication = size_of(shares * communication_bytes_);
    ranks_.all_to_all({buffers.sent, communication}, {buffers.received, communication});
    const std::int64_t mine = std::min(end, begin + share * ranks_.rank());
    const std::int64_t mine_end = std::min(end, mine + share);
    if (mine < mine_end) {
      enqueue_sums(list_, range(mine, mine_end), rule_, own, buffers.received, share, buffers.sums,
                   on_);
    }
    fill_up(buffers.sums, (mine_end - mine) * own_bytes, share * own_bytes);
    ranks_.all_gather({buffers.sums, size_of(share * own_bytes)},
                      {buffers.results, size_of(shares * own_bytes)});
    enqueue_results(list_, range(begin, end), own, buffers.results, on_);
  }

  /// Fills the padding of a share with zeros, so that no undefined bytes are sent.
  void fill_up(std::byte* data, std::int64_t from, std::int64_t to) const {
    if (from == to) return;
    check(cudaMemsetAsync(data + from, 0, size_of(to - from), on_), "fill up a share");
  }

  /// Elements of one rank's share.
  [[nodiscard]] std::int64_t share_of(std::int64_t count) const {
    return (count + ranks_.size() - 1) / ranks_.size();
  }
  /// Bytes of the widest element of the list.
  [[nodiscard]] std::size_t max_own_bytes() const {
    std::int64_t maximum = 1;
    for (const auto& row : host_.rows)
      maximum = std::max(maximum, std::int64_t{storage_bytes(row.format)});
    return size_of(maximum);
  }
  /// The chunk that holds the element at a position of the list.
  [[nodiscard]] std::uint64_t chunk_at(std::int64_t position) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), position);
    const auto tensor = static_cast<std::size_t>(after - starts_.begin() - 1);
    return host_.rows[tensor].first_chunk +
           static_cast<std::uint64_t>((position - starts_[tensor]) >> numerics::chunk_level);
  }
  [[nodiscard]] list_range range(std::int64_t begin, std::int64_t end) const {
    return {begin, end, chunk_at(begin), chunk_at(end - 1) + 1};
  }

  communicator& ranks_;
  cudaStream_t on_;
  const backends::list_data& host_;
  reduction_rule rule_;
  workspace memory_;
  list_tables tables_;
  reduction_list list_;
  std::int64_t communication_bytes_;
  std::vector<std::int64_t> starts_ = {0};  ///< first position of each tensor; the list's end
};

template <arithmetic By>
void reduce(communicator& ranks, const backends::list_data& list, const gradient_reduction& how) {
  if (list.elements == 0) return;
  reduction(ranks, list, how, By).run();
}

}  // namespace

const backends::device_rank_functions emulated_ranks = {
    .all_reduce_max = all_reduce_max,
    .all_gather = all_gather,
    .reduce = reduce<arithmetic::by_definition>,
};

const backends::device_rank_functions native_ranks = {
    .all_reduce_max = all_reduce_max,
    .all_gather = all_gather,
    .reduce = reduce<arithmetic::hardware>,
};

}  // namespace samebits::cuda
