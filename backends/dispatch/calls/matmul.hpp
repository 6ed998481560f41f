// Matrix multiplication: the checked calls that a backend receives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/quantize.hpp"
#include "numerics/hardware/accumulate.hpp"
#include "samebits/matmul.hpp"

namespace samebits::backends {

/// Length along K of a block with one tile scale, and of a block of fp32_per_128.
inline constexpr std::int64_t scale_block = 128;

/// Scales of one operand. A view without data means that all scales are 1.
struct scale_source {
  const_matrix_view values;
  tile_grid grid;
  tile_shape tile = {0, 0};  ///< as the caller gave it
};

/// A checked call. M, N or K may be 0; operation_entry::run() gets calls with M, N > 0.
struct matmul_call {
  const_matrix_view a;  ///< [M, K]
  const_matrix_view b;  ///< [K, N]
  matrix_view d;        ///< [M, N]
  accumulator sum;
  numerics::accumulate_rule unit;  ///< for accumulator kind tensor_core only
  scale_source a_scales;
  scale_source b_scales;
  /// Scales change along K: after every scale_block elements, for exact after exact_block.
  bool scaled_along_k;
  std::int64_t exact_block;
  scale_order order;
  const_matrix_view c;  ///< no data if there is no C
  addend c_enters;
};

/// Bytes to which an address is aligned, up to 256.
inline std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

/// A product in device memory, by an algorithm whose results were compared with matmul().
class device_product {
 public:
  virtual ~device_product() = default;
  /// Enqueues the product of a call that differs from the chosen one in addresses alone.
  virtual void run(const matmul_call& call, void* stream) const = 0;
  [[nodiscard]] const std::string& algorithm() const { return algorithm_; }

 protected:
  explicit device_product(std::string algorithm) : algorithm_(std::move(algorithm)) {}

 private:
  std::string algorithm_;
};

}  // namespace samebits::backends
