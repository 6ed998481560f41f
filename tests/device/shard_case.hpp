// Gradients that are spread over ranks, for tests of the loss scaler of a GPU: the whole list on
// the host, one rank's shards of it there and on the device.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "device/device_copy.hpp"
#include "device/scaler_case.hpp"
#include "samebits/distributed.hpp"
#include "samebits/samebits.hpp"

namespace samebits::support {

/// A tensor of a list, and its shards: shard s is [borders[s], borders[s + 1]) elements, and lies
/// on rank (s + turn) % ranks.
struct spread_tensor {
  format_id format = format_id::fp16;
  std::vector<std::size_t> borders = {};
  std::size_t turn = 0;

  [[nodiscard]] std::size_t size() const { return borders.back(); }
  [[nodiscard]] std::size_t ranks() const { return borders.size() - 1; }
  [[nodiscard]] std::size_t shard_of(int rank) const {
    return (static_cast<std::size_t>(rank) + ranks() - turn % ranks()) % ranks();
  }
  [[nodiscard]] std::size_t begin(int rank) const { return borders[shard_of(rank)]; }
  [[nodiscard]] std::size_t end(int rank) const { return borders[shard_of(rank) + 1]; }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(storage_bytes(format));
  }
};

using spread_list = std::vector<spread_tensor>;

/// Tensors of these sizes, in the three formats by turns, cut on chunks at random for n ranks.
inline spread_list random_list(std::span<const std::size_t> sizes, int n, engine& random) {
  constexpr format_id formats[] = {format_id::fp16, format_id::fp32, format_id::bf16};
  spread_list list;
  for (const std::size_t size : sizes) {
    spread_tensor t = {formats[list.size() % 3], {0, size}, random() % 8};
    for (int i = 1; i < n; ++i) t.borders.push_back(random() % (size / 4096 + 1) * 4096);
    std::sort(t.borders.begin(), t.borders.end());
    list.push_back(std::move(t));
  }
  return list;
}

/// Values of a list. Numbers differ from draw to draw; sometimes one is Inf or NaN.
class spread_values {
 public:
  explicit spread_values(spread_list list) : list_(std::move(list)) {
    for (const spread_tensor& t : list_) {
      codes_.emplace_back(t.size() * t.bytes());
      total_ += t.size();
    }
  }

  void draw(engine& random, double scale) {
    for (std::size_t i = 0; i < list_.size(); ++i) fill(i, random());
    if (total_ == 0 || (random() % 30 != 0 && !(scale > 0x1p18 && random() % 2 == 0))) return;
    std::size_t at = random() % total_, i = 0;
    for (; at >= list_[i].size(); ++i) at -= list_[i].size();
    put(i, at, random() % 4 == 0 ? 0x7FFF : 0xFC00);
  }

  /// Finite elements of both signs below 2, in all binades.
  void fill(std::size_t tensor, std::uint64_t seed) {
    std::vector<std::byte>& codes = codes_[tensor];
    const bool wide = list_[tensor].format == format_id::fp32;
    const std::uint64_t kept = wide ? 0xBFFFFFFFBFFFFFFFu : 0xBFFFBFFFBFFFBFFFu;
    for (std::size_t at = 0; at < codes.size(); at += 8) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t mixed = (seed ^ (seed >> 29)) * 0xBF58476D1CE4E5B9u;
      const std::uint64_t word = (mixed ^ (mixed >> 32)) & kept;
      std::memcpy(codes.data() + at, &word, std::min<std::size_t>(8, codes.size() - at));
    }
  }

  /// An element by its value in fp16; Inf and NaN stay what they are.
  void put(std::size_t tensor, std::size_t element, std::uint16_t half) {
    const spread_tensor& t = list_[tensor];
    const std::uint32_t wide =
        std::bit_cast<std::uint32_t>(static_cast<float>(fp16::from_bits(half)));
    std::byte* const to = codes_[tensor].data() + element * t.bytes();
    const std::uint32_t code = t.format == format_id::fp16   ? half
                               : t.format == format_id::bf16 ? wide >> 16
                                                             : wide;
    std::copy_n(reinterpret_cast<const std::byte*>(&code), t.bytes(), to);
  }

  /// The elements that lie on a rank.
  [[nodiscard]] std::vector<matrix_view> shards(int rank) {
    std::vector<matrix_view> views;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      views.push_back(part(i, list_[i].begin(rank), list_[i].end(rank)));
    }
    return views;
  }
  [[nodiscard]] std::vector<std::uint64_t> first(int rank) const {
    std::vector<std::uint64_t> all;
    for (const spread_tensor& t : list_) all.push_back(t.begin(rank));
    return all;
  }

 private:
  [[nodiscard]] matrix_view part(std::size_t tensor, std::size_t begin, std::size_t end) {
    if (begin == end) return {nullptr, list_[tensor].format, 1, 0, 0, 1};
    const auto count = static_cast<std::int64_t>(end - begin);
    return {codes_[tensor].data() + begin * list_[tensor].bytes(),
            list_[tensor].format,
            1,
            count,
            count,
            1};
  }

  spread_list list_;
  std::vector<std::vector<std::byte>> codes_;
  std::size_t total_ = 0;
};

/// Copies on the device of some of them.
class device_shards {
 public:
  explicit device_shards(const std::vector<matrix_view>& host) : host_(host) {
    std::vector<matrix_view> placed;
    for (const matrix_view& v : host_) {
      copies_.push_back(std::make_unique<guarded_copy>(v));
      const matrix_view there = copies_.back()->placed(v);
      placed.push_back(
          v.cols == 0 ? matrix_view{nullptr, v.format, 1, 0, 0, 1, memory_space::device} : there);
    }
    list_ = tensor_list(placed);
  }
  /// From the host, which has changed.
  void upload() const {
    for (std::size_t i = 0; i < host_.size(); ++i) {
      if (host_[i].cols == 0) continue;
      check_cuda(
          cudaMemcpy(copies_[i]->data(), host_[i].data,
                     static_cast<std::size_t>(host_[i].cols * storage_bytes(host_[i].format)),
                     cudaMemcpyHostToDevice),
          "shards to the device");
    }
    check_cuda(cudaStreamSynchronize(nullptr), "shards to the device");
  }
  [[nodiscard]] const tensor_list& listed() const { return list_; }

 private:
  std::vector<matrix_view> host_;
  std::vector<std::unique_ptr<guarded_copy>> copies_;
  tensor_list list_;
};

}  // namespace samebits::support
