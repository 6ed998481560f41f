// An optimizer_list whose tables the caller copies to the device, so that a framework's allocator owns
// all device memory and no call waits.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "samebits/optimizer.hpp"

namespace samebits::backends {

/// A list of tensors in device memory. All arrays lie on the device of the first one; no call checks
/// that.
class described_list {
 public:
  /// Throws as optimizer_list's constructor does.
  explicit described_list(std::vector<optimizer_tensor> tensors);

  /// The list, for optimizer_step(). Has no tables before write_tables().
  [[nodiscard]] const optimizer_list& list() const { return list_; }
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

}  // namespace samebits::backends
