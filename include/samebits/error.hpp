// The exceptions of the public API.
#pragma once

#include <stdexcept>
#include <string>

namespace samebits {

/// An argument was refused; the message names it and says what was expected. Nothing was written.
class invalid_argument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The call is valid but this build, backend or machine cannot serve it; the message names the
/// combination and what there is instead. Nothing was written.
class unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The process, the build or the GPU does not compute in IEEE 754 steps, or has not been tested and
/// cannot be now; the message names every failed check, what it means and what to do. Nothing was
/// written.
class environment_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Calls of an object came in an order that means nothing; the message names the call that is
/// missing or came twice. Nothing changed.
class call_order_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A call failed after it had begun to write: some elements hold new values, others old ones.
/// Repeat it only if none of its outputs is also an input. The message names the call; the cause is
/// nested (std::rethrow_if_nested).
///
/// Every other exception of a call on host arrays, std::bad_alloc too, means that nothing was
/// written.
class incomplete_write : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Ranks that must act alike do not, or another rank refused its arguments; the message names the
/// rank or what differs. Every rank throws. Nothing was written.
class rank_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A loss scale can do no more and its policy wants the run to end; the message says why.
class scale_exhausted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A CUDA call failed; the message names the call and the error. The runtime's last error has been
/// cleared.
class cuda_error : public std::runtime_error {
 public:
  cuda_error(const std::string& what, int code) : std::runtime_error(what), code_(code) {}
  /// The cudaError_t.
  [[nodiscard]] int code() const { return code_; }

 private:
  int code_;
};

}  // namespace samebits
