// Backends: the list of compiled backends, their support on this machine, and the executor of a
// call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/core/table.hpp"

namespace samebits {

/// Memory of a view: `host` for CPU backends, `device` for CUDA backends.
enum class memory_space : std::uint8_t { host, device };
template <>
inline constexpr auto table_of<memory_space> = enum_table<memory_space::device>({"host", "device"});

/// Description of one compiled backend, as `fpinspect backends` prints it.
struct backend_info {
  std::string_view name;
  std::string_view description;
  memory_space space;           ///< memory of the views that the backend works on
  bool supported;               ///< by this machine
  bool is_default;              ///< used for views of its space when a call names no backend
  std::string why_unsupported;  ///< a few words; empty if supported
};

/// Backend, threads and stream of an array call. Every executor returns the same bits; only speed
/// differs.
struct executor {
  std::string_view backend = {};  ///< one of compiled_backends(); empty: the default for the views
  int threads = 1;         ///< CPU threads, >= 1; 0: one per hardware thread. Host backends only
  void* stream = nullptr;  ///< cudaStream_t; null is the default stream. Device backends only
};

/// Returns an executor on a CUDA stream of the device that holds the call's memory.
///
/// A call without a result is enqueued and returns. It neither synchronises nor allocates, and can
/// be captured into a CUDA graph. Exceptions are the first calls of some functions, which wait and may
/// allocate device memory; evaluate() says which.
///
/// A call that returns a result waits for the stream, and its description says so. It throws
/// invalid_argument while the stream is being captured.
///
/// @param stream  a cudaStream_t
/// @param backend  one of compiled_backends(); empty: the default for the views
inline executor on_stream(void* stream, std::string_view backend = {}) {
  return {backend, 1, stream};
}

/// Returns the compiled backends.
std::vector<backend_info> compiled_backends();

/// Returns the executor with this backend.
///
/// @throws invalid_argument, listing the compiled names, if the backend is not compiled in.
/// @throws unsupported, listing the compiled names, if this machine cannot run the backend.
executor find_executor(std::string_view name, int threads = 1);

/// Returns an executor with the default backend for host views: the one in the environment variable
/// SAMEBITS_BACKEND if it names a host backend, else the widest supported one.
///
/// @throws as find_executor() does.
executor default_executor(int threads = 1);

}  // namespace samebits
