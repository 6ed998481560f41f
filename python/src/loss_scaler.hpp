// The host's loss scaler as an object of Python.
#pragma once

#include <mutex>

#include "c_call.hpp"

namespace samebits::python {

/// Owns a scaler of the library. A mutex serialises the calls of several threads. The mutex is
/// recursive because the optimizer that step() runs may ask for the scale. A thread releases the
/// GIL while it waits for the mutex.
class scaler {
 public:
  /// @param settings  a list of (name, value), both as text
  scaler(int policy, nb::list settings);
  explicit scaler(const char* text) { c::check(samebits_loss_scaler_load(text, &scaler_)); }
  ~scaler() { samebits_loss_scaler_destroy(scaler_); }
  scaler(const scaler&) = delete;
  scaler& operator=(const scaler&) = delete;

  /// Calls the library with this scaler, and raises the error of the call.
  template <class Call>
  void locked(Call&& call) {
    std::int32_t status = SAMEBITS_OK;
    {
      const nb::gil_scoped_release release;
      const std::scoped_lock lock(mutex_);
      const host_guard guard;
      status = call(scaler_);
    }
    c::check(status);
  }

 private:
  samebits_loss_scaler* scaler_ = nullptr;
  std::recursive_mutex mutex_;
};

}  // namespace samebits::python
