// Device scope: finds the device of a call from its memory and makes it current during the call.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "backends/dispatch/backend.hpp"

namespace samebits::backends {

/// The devices that can access an address.
struct address_memory {
  enum class kind : std::uint8_t {
    device,  ///< memory of one device
    shared,  ///< managed or page-locked memory, accessible to every device
    host,    ///< memory that no device can access
  };
  kind what;
  int device;  ///< valid for kind::device
};

/// Queries the CUDA runtime about devices, addresses and streams. All functions throw cuda_error.
struct device_runtime {
  bool (*is_available)();  ///< whether there is a driver and a GPU
  int (*current_device)();
  void (*make_current)(int device);
  address_memory (*memory_of)(const void* address);
  /// The device of a stream (cudaStream_t). Returns no_device for a default stream, which every
  /// device has, for a stream in capture, and if the runtime is too old to tell.
  int (*device_of_stream)(void* stream);
  bool (*is_capturing)(void* stream);
};

inline constexpr int no_device = -1;

/// The runtime of the compiled device backends; null without such a backend or without a GPU.
const device_runtime* available_runtime();

/// The number of the current device; no_device without a GPU.
int current_device_number();

/// The address of a view's elements, for the checks below. Null for an empty view, whose pointer
/// may be arbitrary.
inline const void* address_of(const const_matrix_view& v) {
  return v.rows == 0 || v.cols == 0 ? nullptr : v.data;
}

/// Finds the one device that holds all memory of a call.
class device_finder {
 public:
  explicit device_finder(memory_space space)
      : runtime_(space == memory_space::device ? available_runtime() : nullptr) {}

  /// Adds an argument's address; null is skipped. `name` is the argument's name or a function that
  /// returns it.
  /// @throws invalid_argument  if no device can access the memory
  /// @throws invalid_argument  if an earlier argument is on another device
  template <class Name>
  void add(const void* address, const Name& name) {
    if (runtime_ == nullptr || address == nullptr) return;
    const address_memory memory = runtime_->memory_of(address);
    if (memory.what == address_memory::kind::shared) return;
    if (memory.what == address_memory::kind::device) {
      if (found_ == no_device) found_ = memory.device;
      if (found_ == memory.device) return;
    }
    if constexpr (requires { name(); }) {
      refuse(memory, name());
    } else {
      refuse(memory, std::string(name));
    }
  }

  /// Adds an argument whose device is known; no_device is skipped.
  void add_device(int device, const char* name) {
    if (runtime_ == nullptr || device == no_device) return;
    if (found_ == no_device) found_ = device;
    if (found_ != device) refuse({address_memory::kind::device, device}, name);
  }

  /// The device found; no_device if all memory is shared or none was added.
  [[nodiscard]] int device() const { return found_; }

 private:
  [[noreturn]] void refuse(const address_memory& memory, const std::string& name) const;

  const device_runtime* runtime_;
  int found_ = no_device;
};

/// An argument's address and name; the address may be null.
struct named_address {
  const void* address = nullptr;
  const char* name = "";

  named_address() = default;
  named_address(const void* of, const char* in_messages) : address(of), name(in_messages) {}
  named_address(const const_matrix_view& v, const char* in_messages)
      : address(address_of(v)), name(in_messages) {}
};

/// Whether a call returns before or after the device completes it.
enum class completion : std::uint8_t { enqueued, awaited };

/// Makes the device of a call current until the end of the scope. Does nothing for host memory.
/// Does nothing without a GPU; choosing a backend then reports the missing GPU.
class device_scope {
 public:
  /// @throws invalid_argument  for memory that device_finder refuses
  /// @throws invalid_argument  for a stream of another device
  /// @throws invalid_argument  for an awaited call on a stream that is being captured into a graph
  device_scope(memory_space space, std::initializer_list<named_address> memory, void* stream,
               completion ends = completion::enqueued);
  /// For a known device. no_device means the stream's device, or else the current device.
  device_scope(memory_space space, int device, void* stream,
               completion ends = completion::enqueued);
  ~device_scope();
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;

 private:
  void enter(int device, void* stream, completion ends);
  void leave() noexcept;

  const device_runtime* runtime_;
  int before_ = no_device;  ///< the device to restore; no_device: nothing to restore
};

}  // namespace samebits::backends
