// Errors of the C interface: no exception leaves a function.
#pragma once

namespace samebits::c_api {

/// Keeps the message of the current exception for samebits_last_error() and returns its status.
int record_error() noexcept;

/// Calls run() and returns the status.
template <class Run>
int guarded(const Run& run) noexcept {
  try {
    run();
    return 0;
  } catch (...) {
    return record_error();
  }
}

}  // namespace samebits::c_api
