// Backends: which there are, which this machine supports, and how a call names one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace samebits {

/// Which processor works on the memory of a view.
enum class memory_space : std::uint8_t { host, device };

/// What `fpinspect backends` prints of one compiled backend.
struct backend_info {
  std::string_view name;
  std::string_view description;
  memory_space space;           ///< of the views it works on
  bool supported;               ///< by this machine
  bool is_default;              ///< chosen for views of its space when a call names none
  std::string why_unsupported;  ///< a few words; empty if supported
};

/// Where an array call runs. Every executor returns the same bits; only speed depends on it.
struct executor {
  std::string_view backend = {};  ///< one of compiled_backends(); empty: the default for the views
  int threads = 1;         ///< CPU threads, >= 1; 0: one per hardware thread. Host backends only
  void* stream = nullptr;  ///< cudaStream_t; null is the default stream. Device backends only
};

/// An executor on a CUDA stream (a cudaStream_t) of the device that the call's memory lies on. A
/// call without a result is enqueued and returns; it neither synchronises nor allocates, and can be
/// captured into a CUDA graph. A call that returns a result waits for the stream, says so at the
/// head of its description, and throws invalid_argument while the stream is being captured.
inline executor on_stream(void* stream, std::string_view backend = {}) {
  return {backend, 1, stream};
}

/// The compiled backends.
std::vector<backend_info> compiled_backends();

/// The executor of that name. Throws invalid_argument for a name that is not compiled in and
/// unsupported for one that this machine cannot run; both messages list the names there are.
executor find_executor(std::string_view name, int threads = 1);

/// The default backend for host views: the environment variable SAMEBITS_BACKEND if it names a host
/// backend, else the widest supported one. Throws as find_executor does.
executor default_executor(int threads = 1);

}  // namespace samebits
