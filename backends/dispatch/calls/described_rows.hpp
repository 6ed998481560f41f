// The tables of a described list of tensors, in the memory of its tensors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/device_scope.hpp"
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
  /// Bytes of the tables in device memory; 0 for tensors in host memory.
  [[nodiscard]] std::size_t tables_bytes() const {
    if (space == memory_space::host) return 0;
    return rows_bytes() + row_of_chunk.size() * sizeof(row_of_chunk[0]);
  }
  /// Writes tables_bytes() bytes into host memory.
  void write_tables(std::byte* to) const {
    if (space == memory_space::host || rows.empty()) return;
    std::memcpy(to, rows.data(), rows_bytes());
    std::copy_n(reinterpret_cast<const std::byte*>(row_of_chunk.data()),
                tables_bytes() - rows_bytes(), to + rows_bytes());
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

  /// Copies the tables to a device, in one allocation. no_device (managed memory, or no elements): to
  /// the current one.
  void upload(int device_of_tensors) {
    device = device_of_tensors;
    const device_scope on(space, device, nullptr);
    if (device == no_device) device = current_device_number();
    if (rows.empty()) return;
    const auto has_memory = [](const backend& b) { return b.memory != nullptr; };
    const device_memory& memory = *resolve({}, memory_space::device, has_memory).memory;
    std::vector<std::byte> image(tables_bytes());
    write_tables(image.data());
    auto* const first = static_cast<std::byte*>(memory.allocate(image.size()));
    on_device = {first,
                 [&memory](const std::byte* p) { memory.release(const_cast<std::byte*>(p)); }};
    memory.upload(first, image.data(), image.size());
  }
};

}  // namespace samebits::backends
