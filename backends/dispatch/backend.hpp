// Backend: its name, its requirements and its array functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "samebits/convert.hpp"

namespace samebits::backends {

struct self_test_entry;          // backends/self_test/self_test.hpp
struct device_rank_functions;    // backends/ranks/rank_functions.hpp
struct device_scaler_functions;  // backends/loss_scaler/resident.hpp
struct device_runtime;           // backends/dispatch/device_scope.hpp
struct compute_call;             // backends/dispatch/calls/array_arithmetic.hpp
struct evaluate_call;            // backends/dispatch/calls/evaluate.hpp
// backends/dispatch/calls/fused.hpp
struct fused_call;
struct fused_quantize_call;
// backends/dispatch/calls/sums.hpp
struct sum_kernels;
struct norm_parameters_call;
struct device_embedding_call;
struct attention_call;  // backends/dispatch/calls/attention.hpp
// backends/dispatch/calls/row_functions.hpp
struct row_call;
struct cross_entropy_call;
struct reduction_call;  // backends/dispatch/calls/reductions.hpp
struct hash_call;       // backends/dispatch/calls/hash.hpp
// backends/dispatch/calls/codebook.hpp
struct quantize_blocks_call;
struct dequantize_blocks_call;
// backends/dispatch/calls/matmul.hpp
struct matmul_call;
class device_product;
// backends/dispatch/calls/quantize.hpp
struct quantize_call;
struct dequantize_call;
struct quantize_list_data;
// backends/dispatch/calls/list.hpp
struct inspect_call;
struct scale_call;
struct axpby_call;
struct accumulate_call;
struct cast_call;
// backends/dispatch/calls/optimizer.hpp
struct optimizer_call;
struct store_call;

/// The elements [begin, end) of a view, counted in row-major order.
struct element_range {
  std::int64_t begin;
  std::int64_t end;
};

/// Calls work() in the state of the processor that the kernels of a host backend need.
using kernel_scope = void (*)(const std::function<void()>& work);
/// Calls work() in a scope, without memory for a copy of it.
template <class Work>
void run_in(kernel_scope scope, const Work& work) {
  scope(std::cref(work));
}
/// The kernel_scope of kernels that compute in integers, or whose state require_tested() has checked.
inline void in_any_state(const std::function<void()>& work) { work(); }

/// A conversion of a matrix that is not empty, with checked arguments. `pitch` is the pitch of the
/// random bits: random.pitch, or the column count if the caller gave no pitch.
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
  /// Waits for all work enqueued on the current device, on any stream, and reports its errors.
  void (*synchronize)();
};

/// One operation of a backend. Host and device backends fill in the same three functions. `Call`
/// has the checked arguments of one call, and the memory that receives the results.
template <class Call>
struct operation_entry {
  /// Whether the backend supports this call; otherwise the call is refused by name. Null: supports
  /// every call. Reads formats, shapes and options, not elements.
  bool (*supports)(const Call& call) = nullptr;
  /// Bytes of device memory that the call needs; null: none. If the call gives no workspace, run()
  /// allocates it on the stream.
  std::size_t (*workspace)(const Call& call) = nullptr;
  /// Host backends split the work among where.threads and return when it is complete. Device
  /// backends enqueue it on where.stream; they wait only if the call wants a result in host memory.
  /// Null: the backend lacks the operation.
  void (*run)(const Call& call, const executor& where) = nullptr;

  [[nodiscard]] bool has(const Call& call) const {
    return run != nullptr && (supports == nullptr || supports(call));
  }
  [[nodiscard]] std::size_t workspace_of(const Call& call) const {
    return workspace == nullptr ? 0 : workspace(call);
  }
};

/// A backend. Each backend fills in the operations that it supports (designated initializers).
/// Calling any other operation is refused by name.
struct backend {
  std::string_view name;
  std::string_view description;
  memory_space space;  ///< memory of the views that the backend works on
  /// Empty if this machine can run the backend; otherwise the reason in a few words.
  std::string (*why_unsupported)();
  /// The self-test of the backend's arithmetic. Device backends call require_tested() in run();
  /// for conversions, convert() calls require_tested() instead. Host backends call
  /// require_tested() only before code that depends on the process: on its build flags or its
  /// control register. Null: there is no self-test.
  self_test_entry* self_test = nullptr;

  // Operations.
  operation_entry<convert_call> convert = {};
  operation_entry<compute_call> compute = {};
  operation_entry<evaluate_call> evaluate = {};
  operation_entry<fused_call> fused = {};
  operation_entry<row_call> row_functions = {};
  operation_entry<attention_call> attention = {};
  operation_entry<reduction_call> reduce = {};
  operation_entry<hash_call> hash = {};
  operation_entry<matmul_call> matmul = {};
  operation_entry<quantize_call> quantize = {};
  operation_entry<dequantize_call> dequantize = {};
  operation_entry<quantize_list_data> quantize_list = {};
  operation_entry<quantize_blocks_call> quantize_blocks = {};
  operation_entry<dequantize_blocks_call> dequantize_blocks = {};
  operation_entry<inspect_call> inspect = {};
  operation_entry<scale_call> scale = {};
  operation_entry<axpby_call> axpby = {};
  operation_entry<accumulate_call> accumulate = {};
  operation_entry<cast_call> cast = {};
  operation_entry<optimizer_call> step = {};
  operation_entry<store_call> store = {};

  /// Kernels of sums in the order of PyTorch's kernels. Null: none.
  const sum_kernels& (*sums)() = nullptr;

  // Device backends only.
  operation_entry<cross_entropy_call> cross_entropy = {};
  operation_entry<norm_parameters_call> norm_parameters = {};
  operation_entry<fused_quantize_call> fused_quantize = {};
  operation_entry<device_embedding_call> embedding_gradient = {};
  const device_memory* memory = nullptr;
  const device_runtime* runtime = nullptr;
  const device_rank_functions* ranks = nullptr;
  /// Builds the tables of a quantize_list in device memory. All device backends share one table
  /// format.
  std::shared_ptr<const void> (*prepare_list)(std::span<const quantize_call> calls) = nullptr;
  const device_scaler_functions* scaler = nullptr;
  /// Chooses an algorithm for a product in device memory, and waits. Throws what matmul_plan does.
  std::shared_ptr<const device_product> (*plan_product)(const matmul_call& call,
                                                        void* stream) = nullptr;
};

/// The compiled backends. Within one memory space the simplest comes first.
std::span<const backend* const> compiled();

/// The compiled backend of this name. Throws as find_executor does.
const backend& by_name(std::string_view name);

/// The backend for views in `space`:
/// - the backend that the executor names;
/// - without a name, the backend that SAMEBITS_BACKEND names, if it works in this memory;
/// - otherwise the last supported backend of this memory for which has(backend) is true.
/// Throws as find_executor does.
const backend& resolve(const executor& where, memory_space space,
                       const std::function<bool(const backend&)>& has);
/// The backend for a conversion. Throws if the backend that the executor names does not work in
/// this memory or does not support the conversion.
const backend& converting_backend(const executor& where, const convert_call& call);

}  // namespace samebits::backends
