// shard_memory: the tables and messages of a shard layout in device memory, for one scaler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/cuda/common/allocation.hpp"
#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/training/shard_kernels.cuh"
#include "backends/ranks/shard_layout.hpp"

namespace samebits::cuda {

/// Owner of one allocation with the shard_tables of a layout.
class shard_memory {
 public:
  explicit shard_memory(const backends::shard_data& layout) {
    std::vector<std::uint32_t> wide, long_tensors;
    for (std::size_t i = 0; i < layout.own.size(); ++i) {
      if (layout.own[i].chunks > few_chunks_of_sum) wide.push_back(static_cast<std::uint32_t>(i));
    }
    const std::size_t tensors = layout.counts.size();
    for (std::size_t i = 0; i < tensors; ++i) {
      if (layout.slot_of_tensor[i + 1] - layout.slot_of_tensor[i] < 2) continue;
      long_tensors.push_back(static_cast<std::uint32_t>(i));
    }
    tables_.own_count = layout.own.size();
    tables_.wide_count = wide.size();
    tables_.slots = layout.partial_sum_of_slot.size() - 1;
    tables_.tensors = tensors;
    tables_.long_count = long_tensors.size();
    tables_.message_words = layout.message_words;
    tables_.rank = layout.rank;
    tables_.ranks = layout.ranks;
    tables_.fingerprint = layout.fingerprint;
    const auto lay_out = [&](memory_layout at) {
      copy(tables_.own, layout.own, at);
      copy(tables_.wide, wide, at);
      copy(tables_.partial_sums, layout.partial_sums, at);
      copy(tables_.partial_sum_of_slot, layout.partial_sum_of_slot, at);
      copy(tables_.slot_of_tensor, layout.slot_of_tensor, at);
      copy(tables_.long_tensors, long_tensors, at);
      tables_.progress = at.take<shard_progress>(1);
      tables_.sent = at.take<std::uint64_t>(layout.message_words);
      tables_.received =
          at.take<std::uint64_t>(layout.message_words * static_cast<std::size_t>(layout.ranks));
      tables_.sums = at.take<std::uint64_t>(tables_.slots);
      return at.bytes();
    };
    image_.resize(lay_out({}));
    std::byte* const first = device_.on_device(image_.size(), "memory of a loss scaler's shards");
    lay_out(memory_layout(first));
    memory.upload(first, image_.data(), image_.size());
    image_ = {};
  }

  [[nodiscard]] const shard_tables& tables() const { return tables_; }

 private:
  /// Assigns a table its address, and copies it. Tables that are not copied start as zeros.
  template <class T>
  void copy(const T*& table, const std::vector<T>& from, memory_layout& at) {
    const std::size_t offset = at.bytes();
    table = at.take<T>(from.size());
    if (table == nullptr || from.empty()) return;
    std::memcpy(image_.data() + offset, from.data(), from.size() * sizeof(T));
  }

  allocation device_;
  std::vector<std::byte> image_;
  shard_tables tables_ = {};
};

}  // namespace samebits::cuda
