// An optimizer_list whose tables the caller copies to the device, so that a framework's allocator owns
// all device memory and no call waits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "samebits/optimizer.hpp"

namespace samebits::backends {

/// A list of tensors, most of all in device memory. All arrays lie on the device of the first one; no
/// call checks that.
class described_list {
 public:
  /// Tensors in device memory. Throws as optimizer_list's constructor does.
  explicit described_list(std::vector<optimizer_tensor> tensors);
  explicit described_list(std::shared_ptr<optimizer_data> data);

  /// The list, for optimizer_step(). In device memory it has no tables before write_tables().
  [[nodiscard]] const optimizer_list& list() const { return list_; }
  /// 0 in host memory.
  [[nodiscard]] std::size_t tables_bytes() const;
  /// Whether the list's tables have an address on the device.
  [[nodiscard]] bool has_tables() const;
  /// Writes tables_bytes() bytes into host memory. The caller copies the bytes to `on_device` before
  /// the first step.
  void write_tables(std::byte* to, const std::byte* on_device);

 private:
  std::shared_ptr<optimizer_data> data_;
  optimizer_list list_;
};

struct optimizer_parts;  // backends/dispatch/calls/optimizer.hpp

/// Tensors of an optimizer whose gradients move: a new list checks only what depends on gradients.
class described_tensors {
 public:
  /// The tensors' gradients have a format and no address. Throws as optimizer_list's constructor does
  /// for formats and numbers.
  described_tensors(std::vector<optimizer_tensor> tensors, memory_space space);

  [[nodiscard]] std::size_t size() const;
  /// A list with these addresses of gradients, one for each tensor; a tensor whose address is null
  /// takes no part in steps. Throws as optimizer_list's constructor does for memory.
  [[nodiscard]] described_list with_gradients(std::span<const void* const> addresses) const;

 private:
  std::shared_ptr<const optimizer_parts> parts_;
};

}  // namespace samebits::backends
