// The boundary of the C interface: exceptions become a status and a message.
#pragma once

#include <stdexcept>

#include "samebits/c/base.h"

namespace samebits::c_api {

/// Thrown if a function of the caller, such as the optimizer of a step, reports a failure.
class callback_failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Records the exception that is being handled as the calling thread's last error.
///
/// @returns the status of the exception
samebits_status record_error() noexcept;

/// Calls f() and returns the status of the call. Every function of the C interface that can fail
/// does its work in guarded().
template <class Function>
samebits_status guarded(const Function& f) noexcept {
  try {
    f();
    return SAMEBITS_OK;
  } catch (...) {
    return record_error();
  }
}

}  // namespace samebits::c_api
