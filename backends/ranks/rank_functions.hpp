// Rank functions: the functions that a device backend supplies for communicators on device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "samebits/communicator.hpp"
#include "samebits/distributed.hpp"

namespace samebits::backends {

struct list_data;  // backends/dispatch/calls/list.hpp

/// All functions enqueue on ranks.stream().
struct device_rank_functions {
  /// The communicator's operations on host memory. Both wait for the result.
  void (*all_reduce_max)(communicator& ranks, std::span<std::uint32_t> words);
  void (*all_gather)(communicator& ranks, std::span<const std::byte> sent,
                     std::span<std::byte> received);
  /// exchange_gradients() for a list in device memory, with valid options; how.random.stream is
  /// this rank's. The list needs no tables in device memory. Waits until the list's description is
  /// copied to the device.
  void (*reduce)(communicator& ranks, const list_data& list, const gradient_reduction& how);
};

}  // namespace samebits::backends
