// A failure of a check before it becomes a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/explain/fit.hpp"

namespace samebits::testkit {

/// The smallest failing call that was found.
struct failed_call {
  trial in;
  verdict found;
  explanation why;  ///< empty unless a result is wrong
  std::string how;  ///< which stage found the failure, and after how many results
};

struct check_outcome {
  std::uint64_t compared;
  std::optional<failed_call> failure;
};

/// Makes one call of a conversion, function or quantizer under test, on exactly this input.
///
/// @throws invalid_argument if no code of the domain is found
template <class Tested>
check_outcome check_one_call(const Tested& tested, const array_function& function, trial in);

}  // namespace samebits::testkit
