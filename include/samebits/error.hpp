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

}  // namespace samebits
