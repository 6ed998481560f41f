// Gradient exchange: splits the list into messages, and each message into one share per rank.
#include "backends/ranks/gradient_exchange.hpp"

#include <algorithm>
#include <vector>

#include "numerics/tensor_list/list.hpp"
#include "samebits/core/format.hpp"

namespace samebits::backends {
namespace {

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

/// Consecutive tensors of one format share messages of at most `elements_at_once` elements.
std::vector<list_part> messages_of(const list_data& list, std::int64_t elements_at_once) {
  std::vector<list_part> messages;
  std::int64_t begin = 0;
  for (auto row = list.rows.begin(); row != list.rows.end();) {
    const format_id format = row->format;
    std::int64_t end = begin;
    for (; row != list.rows.end() && row->format == format; ++row) end += row->count;
    while (begin < end) {
      const std::int64_t count = std::min(elements_at_once, end - begin);
      messages.push_back({format, begin, begin + count});
      begin += count;
    }
  }
  return messages;
}

/// One exchange: all buffers lie in one allocation, each aligned to 256 bytes.
class exchange {
 public:
  exchange(communicator& ranks, const gradient_reduction& how, reduction_steps& steps,
           const std::vector<list_part>& messages)
      : ranks_(ranks), steps_(steps), communication_bytes_(storage_bytes(how.communication)) {
    std::int64_t sent = 0, sums = 0;
    for (const list_part& m : messages) {
      const std::int64_t share = share_of(m);
      sent = std::max(sent, ranks.size() * share * communication_bytes_);
      sums = std::max(sums, share * storage_bytes(m.format));
    }
    const auto padded = [](std::int64_t bytes) { return (bytes + 255) / 256 * 256; };
    sent_ = steps.memory(size_of(2 * padded(sent) + padded(sums) + ranks.size() * sums));
    received_ = sent_ + padded(sent);
    sums_ = received_ + padded(sent);
    results_ = sums_ + padded(sums);
  }

  /// Exchanges one message in each direction. Rank k sums the k-th share.
  void run(const list_part& m) const {
    const std::int64_t share = share_of(m);
    const std::int64_t shares = share * ranks_.size();
    const std::int64_t own_bytes = storage_bytes(m.format);
    steps_.contributions(m, sent_);
    fill_up(sent_, (m.end - m.begin) * communication_bytes_, shares * communication_bytes_);
    const std::size_t communication = size_of(shares * communication_bytes_);
    ranks_.all_to_all({sent_, communication}, {received_, communication});
    const std::int64_t mine = std::min(m.end, m.begin + share * ranks_.rank());
    const std::int64_t mine_end = std::min(m.end, mine + share);
    if (mine < mine_end) steps_.sums({m.format, mine, mine_end}, received_, share, sums_);
    fill_up(sums_, (mine_end - mine) * own_bytes, share * own_bytes);
    ranks_.all_gather({sums_, size_of(share * own_bytes)}, {results_, size_of(shares * own_bytes)});
    steps_.results(m, results_);
  }

 private:
  /// Elements of one rank's share.
  [[nodiscard]] std::int64_t share_of(const list_part& m) const {
    return (m.end - m.begin + ranks_.size() - 1) / ranks_.size();
  }
  /// Fills the padding of the last shares, so that no undefined bytes are sent.
  void fill_up(std::byte* data, std::int64_t from, std::int64_t to) const {
    if (from != to) steps_.fill_with_zeros(data + from, size_of(to - from));
  }

  communicator& ranks_;
  reduction_steps& steps_;
  std::int64_t communication_bytes_;
  std::byte* sent_;      // this rank's elements in the communication dtype, by share
  std::byte* received_;  // this rank's share from each rank
  std::byte* sums_;      // sums of this rank's share
  std::byte* results_;   // sums of all shares
};

}  // namespace

void exchange_gradients(communicator& ranks, const list_data& list, const gradient_reduction& how,
                        reduction_steps& steps) {
  const std::vector<list_part> messages = messages_of(list, how.elements_at_once);
  if (messages.empty()) return;
  if (storage_bytes(how.communication) == 1) {
    ranks.all_reduce_max(steps.amaxes());
    steps.scales();
  }
  const exchange all(ranks, how, steps, messages);
  for (const list_part& message : messages) all.run(message);
}

}  // namespace samebits::backends
