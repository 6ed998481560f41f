// The tables of a described list of tensors, in the memory of its tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "numerics/tensor_list/list.hpp"

namespace samebits::backends {

template <class Row>
struct described_rows {
  std::vector<Row> rows = {};
  std::vector<std::uint32_t> row_of_chunk = {};
  std::uint64_t elements = 0;
  memory_space space = memory_space::host;
  int device = -1;  ///< device of the tensors and tables in device memory
  /// For tensors in device memory: a device copy of `rows`, followed by a copy of row_of_chunk.
  std::shared_ptr<const std::byte> on_device = {};

  [[nodiscard]] std::size_t rows_bytes() const { return rows.size() * sizeof(rows[0]); }
  [[nodiscard]] std::size_t chunks_bytes() const {
    return row_of_chunk.size() * sizeof(row_of_chunk[0]);
  }
  [[nodiscard]] numerics::row_tables<Row> tables() const {
    if (space == memory_space::host) {
      return {rows.data(), row_of_chunk.data(), rows.size(), row_of_chunk.size()};
    }
    const std::byte* const first = on_device.get();
    return {reinterpret_cast<const Row*>(first),
            reinterpret_cast<const std::uint32_t*>(first + rows_bytes()), rows.size(),
            row_of_chunk.size()};
  }

  /// Copies the tables to the current device, in one allocation.
  void upload() {
    if (rows.empty()) return;
    const auto has_memory = [](const backend& b) { return b.memory != nullptr; };
    const device_memory& memory = *resolve({}, memory_space::device, has_memory).memory;
    auto* const first = static_cast<std::byte*>(memory.allocate(rows_bytes() + chunks_bytes()));
    on_device = {first,
                 [&memory](const std::byte* p) { memory.release(const_cast<std::byte*>(p)); }};
    memory.upload(first, rows.data(), rows_bytes());
    if (chunks_bytes() == 0) return;
    memory.upload(first + rows_bytes(), row_of_chunk.data(), chunks_bytes());
  }
};

}  // namespace samebits::backends
