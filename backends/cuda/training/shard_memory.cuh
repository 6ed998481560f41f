// shard_memory: the tables and messages of a shard layout in device memory, for one scaler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/cuda/common/allocation.hpp"
#include "backends/cuda/common/cuda.hpp"
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
    const auto place_all = [&] {
      place(tables_.own, layout.own);
      place(tables_.wide, wide);
      place(tables_.partial_sums, layout.partial_sums);
      place(tables_.partial_sum_of_slot, layout.partial_sum_of_slot);
      place(tables_.slot_of_tensor, layout.slot_of_tensor);
      place(tables_.long_tensors, long_tensors);
      place(tables_.progress, 1);
      place(tables_.sent, layout.message_words);
      place(tables_.received, layout.message_words * static_cast<std::size_t>(layout.ranks));
      place(tables_.sums, tables_.slots);
    };
    place_all();  // first pass: adds up the sizes
    image_.resize(bytes_);
    first_ = device_.on_device(bytes_, "memory of a loss scaler's shards");
    bytes_ = 0;
    place_all();
    memory.upload(first_, image_.data(), image_.size());
    image_ = {};
  }

  [[nodiscard]] const shard_tables& tables() const { return tables_; }

 private:
  /// Assigns a table its address. Tables that are not copied from the host start as zeros.
  template <class T>
  void place(T*& table, std::size_t count) {
    table = first_ == nullptr ? nullptr : reinterpret_cast<T*>(first_ + bytes_);
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
  }
  template <class T>
  void place(const T*& table, const std::vector<T>& from) {
    const std::size_t at = bytes_;
    place(table, from.size());
    if (first_ != nullptr && !from.empty()) {
      std::memcpy(image_.data() + at, from.data(), from.size() * sizeof(T));
    }
  }

  allocation device_;
  std::byte* first_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<std::byte> image_;
  shard_tables tables_ = {};
};

}  // namespace samebits::cuda
