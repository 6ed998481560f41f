// What a backend is: a name, what it needs, and its array functions.
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

/// Elements [begin, end) of a view in row-major order of (row, column).
struct element_range {
  std::int64_t begin;
  std::int64_t end;
};

/// Arguments are checked before a backend sees them; pitch is resolved.
struct convert_call {
  const_matrix_view in;
  matrix_view out;
  cast_rule rule;
  random_stream random;
  std::uint64_t pitch = 0;
};

/// The memory of the current device, for callers that hold none: everything is done when a function
/// returns, on the default stream. Throws cuda_error.
struct device_memory {
  void* (*allocate)(std::size_t bytes);  ///< aligned to 256 bytes or more
  void (*release)(void* device) noexcept;
  void (*upload)(void* device, const void* host, std::size_t bytes);
  void (*download)(void* host, const void* device, std::size_t bytes);
  void (*fill)(void* device, std::byte value, std::size_t bytes);
  void (*synchronize)();  ///< waits for everything enqueued and reports its errors
};

/// A backend writes an entry for each operation that it has (designated initializers); what it
/// leaves out is null, and refused by name when it is called.
struct backend {
  std::string_view name;
  std::string_view description;
  memory_space space;  ///< where it works
  /// Empty where this machine can run it, else the reason in a few words.
  std::string (*why_unsupported)();
  /// Whether it has this conversion; what it lacks is refused by name.
  bool (*has)(const convert_call& call);
  /// Host backends: converts a range; called from several threads at once.
  void (*convert)(const convert_call& call, element_range range) = nullptr;
  /// Device backends: enqueues the whole call on a stream (cudaStream_t).
  void (*launch)(const convert_call& call, void* stream) = nullptr;
  /// The self-test that must pass before a call computes. Conversions on the host are integer
  /// arithmetic and need no self-test.
  self_test_entry* self_test = nullptr;
  const device_memory* memory = nullptr;              ///< null for host backends
  const quantizer* quantizes = nullptr;               ///< null where it cannot quantize
  const calculator* computes = nullptr;               ///< null where it has no arithmetic on arrays
  const plan_kernels* plans = nullptr;                ///< host backends; null where it has none
  const device_plan_kernels* device_plans = nullptr;  ///< device backends; the same
  const reducer* reduces = nullptr;                   ///< null where it has no reductions
  const matrix_multiplier* multiplies = nullptr;      ///< host backends; null where it has none
  const device_rank_functions* device_ranks = nullptr;  ///< device backends; the same
  const device_runtime* runtime = nullptr;              ///< null for host backends
};

/// For backends that lack nothing.
inline bool has_everything(const convert_call&) { return true; }

/// The compiled backends; of those of one memory space the plainest first.
std::span<const backend* const> compiled();

/// The compiled backend of that name. Throws as find_executor does.
const backend& by_name(std::string_view name);

/// The backend an executor names for views in `space`; where it names none, the environment's if
/// that is for such memory, else the last supported one that has the call. Throws as find_executor
/// does.
const backend& resolve(const executor& where, memory_space space,
                       const std::function<bool(const backend&)>& has);
inline const backend& resolve(const executor& where, const convert_call& call) {
  return resolve(where, call.in.space, [&](const backend& b) { return b.has(call); });
}
/// The same, refused with a message where it does not work in that memory or lacks the conversion.
const backend& converting_backend(const executor& where, const convert_call& call);

}  // namespace samebits::backends
