// The device of a call on device memory: found from the memory, and current while the call runs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "backends/dispatch/backend.hpp"

namespace samebits::backends {

/// Which devices can work on an address.
struct address_place {
  enum class kind : std::uint8_t {
    device,  ///< memory of one device
    shared,  ///< managed or page-locked memory, which every device reaches
    host,    ///< memory that no device reaches
  };
  kind what;
  int device;  ///< of kind::device
};

/// Asks the CUDA runtime about devices, addresses and streams. All functions throw cuda_error.
struct device_runtime {
  bool (*is_available)();  ///< there is a driver and a GPU
  int (*current_device)();
  void (*make_current)(int device);
  address_place (*place_of)(const void* address);
  /// The device of a stream (cudaStream_t); no_device for a default stream, which every device has,
  /// for a stream that is being captured, and where the runtime is too old to say.
  int (*device_of_stream)(void* stream);
  bool (*is_capturing)(void* stream);
};

inline constexpr int no_device = -1;

/// The runtime of the compiled device backends; null without one, or where there is no GPU.
const device_runtime* available_runtime();

/// The number of the current device; no_device where there is no GPU.
int current_device_number();

/// The address of a view's elements for the checks below; null for a view without elements, whose
/// pointer may lie anywhere.
inline const void* address_of(const const_matrix_view& v) {
  return v.rows == 0 || v.cols == 0 ? nullptr : v.data;
}

/// Finds the one device that all memory of a call lies on.
class device_finder {
 public:
  explicit device_finder(memory_space space)
      : runtime_(space == memory_space::device ? available_runtime() : nullptr) {}

  /// Looks at an argument's address; a null one is skipped. `name` is the argument's name or a
  /// function that returns it. Throws invalid_argument for memory that no device reaches and for
  /// memory of another device than that of an argument before.
  template <class Name>
  void add(const void* address, const Name& name) {
    if (runtime_ == nullptr || address == nullptr) return;
    const address_place place = runtime_->place_of(address);
    if (place.what == address_place::kind::shared) return;
    if (place.what == address_place::kind::device) {
      if (found_ == no_device) found_ = place.device;
      if (found_ == place.device) return;
    }
    if constexpr (requires { name(); }) {
      refuse(place, name());
    } else {
      refuse(place, std::string(name));
    }
  }

  /// The same of an argument whose device is known, or no_device.
  void add_device(int device, const char* name) {
    if (runtime_ == nullptr || device == no_device) return;
    if (found_ == no_device) found_ = device;
    if (found_ != device) refuse({address_place::kind::device, device}, name);
  }

  /// no_device if all memory is shared, or none was seen.
  [[nodiscard]] int device() const { return found_; }

 private:
  [[noreturn]] void refuse(const address_place& place, const std::string& name) const;

  const device_runtime* runtime_;
  int found_ = no_device;
};

/// An argument's address and name; the address may be null.
struct named_address {
  const void* address;
  const char* name;
};

/// Whether a call returns before the device has done it.
enum class completion : std::uint8_t { enqueued, awaited };

/// Makes the device of a call current until the end of the scope. Does nothing for host memory and
/// where there is no GPU: choosing a backend then says so.
class device_scope {
 public:
  /// Throws invalid_argument for what device_finder refuses, for a stream of another device, and
  /// for a call that is awaited on a stream that is being captured into a graph.
  device_scope(memory_space space, std::initializer_list<named_address> memory, void* stream,
               completion ends = completion::enqueued);
  /// The same for a device that is known; no_device: the stream's, or else the current one.
  device_scope(memory_space space, int device, void* stream,
               completion ends = completion::enqueued);
  ~device_scope();
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;

 private:
  void enter(int device, void* stream, completion ends);
  void leave() noexcept;

  const device_runtime* runtime_;
  int before_ = no_device;  ///< the device to return to; no_device: that is current anyway
};

}  // namespace samebits::backends
