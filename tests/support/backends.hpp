// The backends that tests of array functions run over.
#pragma once

#include <string>
#include <vector>

#include "samebits/backend.hpp"

namespace samebits::support {

/// Names of the compiled backends for host memory that this machine can run.
inline std::vector<std::string> supported_backends() {
  std::vector<std::string> names;
  for (const backend_info& backend : compiled_backends()) {
    if (backend.space == memory_space::host && backend.supported) names.emplace_back(backend.name);
  }
  return names;
}

}  // namespace samebits::support
