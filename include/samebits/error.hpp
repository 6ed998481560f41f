// Exceptions of the public API.
#pragma once

#include <stdexcept>
#include <string>

namespace samebits {

/// An argument was refused. The message names the argument and the expected values. Nothing was
/// written.
class invalid_argument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The call is valid, but this build, backend or machine does not support it. The message names the
/// combination and the supported alternatives. Nothing was written.
class unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The process, the build or the GPU does not compute in IEEE 754 steps, or has not been tested and
/// cannot be tested now. The message names every failed check, its meaning and a remedy. Nothing
/// was written.
class environment_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An object's functions were called in the wrong order. The message names the missing or repeated
/// call. Nothing changed.
class call_order_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A call failed after it had begun to write: some elements hold new values, others old ones.
///
/// Repeat the call only if none of its outputs is also an input. The message names the call; the
/// cause is nested (std::rethrow_if_nested). All other exceptions of a call on host arrays,
/// std::bad_alloc included, mean that nothing was written.
class incomplete_write : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The ranks' arguments or states differ, or another rank refused its arguments. The message names
/// the rank or the difference. Every rank throws. Nothing was written.
class rank_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A loss scaling policy ends the run. The message says why.
class scale_exhausted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A CUDA call failed. The message names the call and the error. The runtime's last error has been
/// cleared.
class cuda_error : public std::runtime_error {
 public:
  cuda_error(const std::string& what, int code) : std::runtime_error(what), code_(code) {}
  /// Returns the cudaError_t.
  [[nodiscard]] int code() const { return code_; }

 private:
  int code_;
};

}  // namespace samebits
