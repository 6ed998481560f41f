// The host's loss scaler as an object of Python.
#pragma once

#include <mutex>
#include <type_traits>

#include "call.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits::python {

/// Returns the name of an optimizer.
std::string name_of(nb::handle optimizer);

/// Owns a scaler of the library. A mutex serialises the calls of several threads. The mutex is
/// recursive because the optimizer that step() runs may ask for the scale. A thread releases the
/// GIL while it waits for the mutex.
class scaler {
 public:
  /// @param settings  a list of (name, value), both as text
  scaler(nb::handle policy, nb::list settings);
  /// @param text  from loss_scaler::save()
  explicit scaler(const char* text);
  scaler(const scaler&) = delete;
  scaler& operator=(const scaler&) = delete;

  /// Returns call(scaler), a call of the library, or raises its error.
  template <class Call>
  auto locked(const Call& call, argument_names names = {}) {
    using result = std::invoke_result_t<Call, loss_scaler&>;
    std::conditional_t<std::is_void_v<result>, std::nullptr_t, result> value = {};
    const auto guarded = [&] {
      const std::scoped_lock lock(mutex_);
      if constexpr (std::is_void_v<result>) {
        call(scaler_);
      } else {
        value = call(scaler_);
      }
    };
    run_to_end(elements_without_release, guarded, names);
    if constexpr (!std::is_void_v<result>) return value;
  }
  /// locked() for an optimizer: returns call(scaler, name).
  template <class Call>
  auto locked_for(nb::handle optimizer, const Call& call) {
    return locked([&, name = name_of(optimizer)](loss_scaler& l) { return call(l, name); });
  }

 private:
  loss_scaler scaler_;
  std::recursive_mutex mutex_;
};

}  // namespace samebits::python
