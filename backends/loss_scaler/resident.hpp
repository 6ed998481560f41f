// Loss scaling in the caller's memory, host or device: unscales the gradients of an optimizer into
// a gradient report, and updates a policy's state from the reports of all optimizers.
//
// On a device both are enqueued and nothing waits. The caller supplies all memory, so that a
// framework's allocator owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/dispatch/calls/list.hpp"
#include "numerics/loss_scale/gradient_report.hpp"
#include "numerics/loss_scale/report_ring.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::backends {

/// The gradients of one optimizer. A list in device memory has no tables there: the caller copies
/// them, and passes their address to unscale().
class gradient_list {
 public:
  /// Throws as tensor_list's constructor does, and for formats other than fp32, fp16 and bf16.
  explicit gradient_list(std::vector<list_tensor> tensors);

  [[nodiscard]] memory_space space() const { return described_->space; }
  /// The list's description; for host memory that of host().
  [[nodiscard]] const list_data& described() const { return *described_; }
  /// The list in host memory.
  [[nodiscard]] const tensor_list& host() const { return *host_; }
  /// Bytes of the tables in device memory; 0 for host memory.
  [[nodiscard]] std::size_t tables_bytes() const { return described_->tables_bytes(); }
  /// Writes tables_bytes() bytes.
  void write_tables(std::byte* to) const { described_->write_tables(to); }
  /// Bytes of device memory that unscale() works in; 0 for host memory.
  [[nodiscard]] std::size_t workspace_bytes() const;

 private:
  std::optional<tensor_list> host_;
  std::shared_ptr<const list_data> described_;
};

/// Memory of one unscale() call. In device memory, except for host gradients.
struct unscale_memory {
  const std::byte* tables;  ///< from gradient_list::write_tables(); aligned to 16 bytes
  std::byte* workspace;     ///< [workspace_bytes()]; aligned to 256 bytes
  const numerics::scaler_words* words;
  numerics::gradient_report* report;
};

/// Unscales the gradients of one optimizer by words->inverse and writes the report. Device memory:
/// enqueues on where.stream and returns.
void unscale(const gradient_list& gradients, const numerics::unscale_rule& rule,
             const unscale_memory& memory, const executor& where);

/// Memory of one update. State, words and reports lie in one memory, host or device. The ring lies in
/// host memory; for device memory the device must be able to access it.
struct update_memory {
  std::byte* state;  ///< numerics::resident_scaler of the policy
  numerics::scaler_words* words;
  const numerics::gradient_report* reports;  ///< [count]
  std::uint64_t count;                       ///< optimizers
  numerics::report_slot* ring;
  std::uint64_t capacity;  ///< slots of the ring; >= 1
};

/// Ends a step: the policy sets the next scale, and the ring receives a report. Device memory:
/// enqueues on the stream and returns.
void update(const scaling_settings& settings, memory_space space, const update_memory& memory,
            void* stream);

/// Bytes of a policy's resident state.
std::size_t resident_bytes(const scaling_settings& settings);
/// Writes resident_bytes() bytes and the words of the coming step, both in host memory.
void store_resident(const loss_scaler& from, std::byte* state, numerics::scaler_words* words);
/// Hash of the policy's name and settings, which must be equal on all ranks.
std::uint32_t settings_word(const scaling_settings& settings);
/// A host scaler with these settings that continues from a resident state in host memory. Throws
/// invalid_argument if no scaler can have the state.
loss_scaler load_resident(const scaling_settings& settings, const std::byte* state);

/// The functions that a device backend supplies. All enqueue on the stream.
struct device_scaler_functions {
  std::size_t (*workspace)(const list_data& gradients);
  void (*unscale)(const list_data& gradients, const numerics::unscale_rule& rule,
                  const unscale_memory& memory, void* stream);
  void (*update)(const scaling_settings& settings, const update_memory& memory, void* stream);
};

}  // namespace samebits::backends
