// The GPU's half of a probe, if it is linked and there is a GPU. Includes no CUDA header.
#pragma once

#include <string>

#include "samebits/core/cat.hpp"
#include "samebits/error.hpp"

namespace samebits {

/// The device of a probe.
///
/// @param find  a weak function, null in a program without `library`
/// @param subject  what the probe asks
/// @throws unsupported if the library is not linked or the device has a reason not to be asked
template <class Device>
const Device& usable_device(const Device* (*find)(), const char* subject, const char* library) {
  if (find == nullptr) {
    throw unsupported(
        detail::cat(subject, " cannot be asked: this program is linked without ", library));
  }
  const Device& found = *find();
  if (const std::string reason = found.why_unsupported(); !reason.empty()) {
    throw unsupported(detail::cat(subject, " cannot be asked: ", reason));
  }
  return found;
}

}  // namespace samebits
