// Backend: its name, its requirements and its array functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "samebits/convert.hpp"

namespace samebits::backends {

struct self_test_entry;    // backends/self_test/self_test.hpp
struct quantizer;          // backends/dispatch/quantize.hpp
struct calculator;         // backends/dispatch/array_arithmetic.hpp
struct reducer;            // backends/dispatch/reductions.hpp
struct matrix_multiplier;  // backends/dispatch/matmul.hpp
struct matmul_call;
struct device_plan_kernels;
struct plan_kernels;           // backends/dispatch/plan.hpp
struct device_rank_functions;  // backends/ranks/rank_functions.hpp
struct device_runtime;         // backends/dispatch/device_scope.hpp

/// Elements [begin, end) of a view in row-major order.
struct element_range {
  std::int64_t begin;
  std::int64_t end;
};

/// A checked conversion. pitch is resolved.
struct convert_call {
  const_matrix_view in;
  matrix_view out;
  cast_rule rule;
  random_stream random;
  std::uint64_t pitch = 0;
};

/// Memory functions of the current device, on the default stream. Every function completes before
/// it returns. All throw cuda_error.
struct device_memory {
  void* (*allocate)(std::size_t bytes);  ///< aligned to 256 bytes or more
  void (*release)(void* device) noexcept;
  void (*upload)(void* device, const void* host, std::size_t bytes);
  void (*download)(void* host, const void* device, std::size_t bytes);
  void (*fill)(void* device, std::byte value, std::size_t bytes);
  void (*synchronize)();  ///< waits for all enqueued work and reports its errors
};

/// A backend. Each backend fills in the operations that it supports (designated initializers). All
/// others are null; calling one is refused by name.
struct backend {
  std::string_view name;
  std::string_view description;
  memory_space space;  ///< the memory that it works on
  /// Empty if this machine can run the backend; otherwise the reason in a few words.
  std::string (*why_unsupported)();
  /// Whether the backend supports this conversion; otherwise the call is refused by name.
  bool (*has)(const convert_call& call);
  /// Host backends: converts a range. Several threads call this function at once.
  void (*convert)(const convert_call& call, element_range range) = nullptr;
  /// Device backends: enqueues the whole call on a stream (cudaStream_t).
  void (*launch)(const convert_call& call, void* stream) = nullptr;
  /// The self-test that must pass before a call computes. Host conversions are integer arithmetic
  /// and need no self-test.
  self_test_entry* self_test = nullptr;
  const device_memory* memory = nullptr;                ///< null for host backends
  const quantizer* quantizes = nullptr;                 ///< null if not supported
  const calculator* computes = nullptr;                 ///< null if not supported
  const plan_kernels* plans = nullptr;                  ///< host backends; null if not supported
  const device_plan_kernels* device_plans = nullptr;    ///< device backends; null if not supported
  const reducer* reduces = nullptr;                     ///< null if not supported
  const matrix_multiplier* multiplies = nullptr;        ///< host backends; null if not supported
  const device_rank_functions* device_ranks = nullptr;  ///< device backends; null if not supported
  const device_runtime* runtime = nullptr;              ///< null for host backends
};

/// For backends that support every conversion.
inline bool has_everything(const convert_call&) { return true; }

/// The compiled backends. Within one memory space the simplest comes first.
std::span<const backend* const> compiled();

/// The compiled backend of this name. Throws as find_executor does.
const backend& by_name(std::string_view name);

/// The backend for views in `space`: the one that the executor names. Without a name, the
/// environment's backend if it works in this memory. Otherwise the last supported backend that has
/// the call. Throws as find_executor does.
const backend& resolve(const executor& where, memory_space space,
                       const std::function<bool(const backend&)>& has);
inline const backend& resolve(const executor& where, const convert_call& call) {
  return resolve(where, call.in.space, [&](const backend& b) { return b.has(call); });
}
/// The backend for a conversion. Throws if it does not work in this memory or does not support the
/// conversion.
const backend& converting_backend(const executor& where, const convert_call& call);

}  // namespace samebits::backends
