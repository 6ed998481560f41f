// Rank functions: what a device backend brings to functions over a communicator on device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "samebits/communicator.hpp"
#include "samebits/distributed.hpp"

namespace samebits::backends {

struct plan_data;  // backends/dispatch/plan.hpp

/// They enqueue on ranks.stream().
struct device_rank_functions {
  /// The communicator's operations on memory of the host; they wait for the result.
  void (*all_reduce_max)(communicator& ranks, std::span<std::uint32_t> words);
  void (*all_gather)(communicator& ranks, std::span<const std::byte> sent,
                     std::span<std::byte> received);
  /// reduce_gradients() of a list in device memory, which need not have its tables there, and of
  /// options that are good. Waits until the list's description has arrived.
  void (*reduce)(communicator& ranks, const plan_data& list, const gradient_reduction& how);
};

}  // namespace samebits::backends
