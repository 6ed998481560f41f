// A backend with its own memory: copies host inputs in and host results out.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backends/verify/call.hpp"

namespace samebits::backends::verification {

/// A backend with memory for the inputs and results of calls.
class subject {
 public:
  subject(const backend& tested, int threads) : backend_(&tested), threads_(threads) {}

  [[nodiscard]] const backend& tested() const { return *backend_; }

  /// Sets the inputs of the following runs; they must outlive them.
  void set_inputs(const std::array<std::span<const std::byte>, max_inputs>& inputs);

  /// Makes the call on results filled with `filling`. The results are valid until the next run.
  void run(const call_function& call, std::span<const result_layout> results, std::byte filling);
  [[nodiscard]] std::span<const std::byte> result(std::size_t i) const {
    return std::span(memory_[i]).first(sizes_[i]);
  }

 private:
  /// Device memory that grows if a request exceeds its size.
  struct device_buffer {
    std::unique_ptr<void, void (*)(void*) noexcept> data{nullptr, nullptr};
    std::size_t size = 0;
  };

  std::byte* device(std::size_t buffer, std::size_t bytes);
  std::byte* prepare(std::size_t i, std::byte filling);

  const backend* backend_;
  int threads_;
  std::array<std::span<const std::byte>, max_inputs> inputs_;
  std::array<std::vector<std::byte>, max_results> memory_;      ///< of results, on the host
  std::array<std::size_t, max_results> sizes_ = {};             ///< bytes of results
  std::array<device_buffer, max_inputs + max_results> device_;  ///< inputs, then results
};

}  // namespace samebits::backends::verification
