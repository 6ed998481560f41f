// Backends: which there are, which this machine supports, and how a call names one.
#pragma once

#include <string_view>
#include <vector>

namespace samebits {

/// One compiled backend.
struct backend_info {
  std::string_view name;
  std::string_view description;
  bool supported;   ///< by this machine
  bool is_default;  ///< chosen for host views when a call names none
};

/// Where an array call runs. Every executor returns the same bits; only speed depends on it.
struct executor {
  std::string_view backend;  ///< one of compiled_backends(); empty: the default
  int threads = 1;           ///< CPU threads, >= 1; 0: one per hardware thread
};

/// The compiled backends.
std::vector<backend_info> compiled_backends();

/// The executor of that name. Throws invalid_argument for a name that is not compiled in and
/// unsupported for one that this machine cannot run; both messages list the names there are.
executor find_executor(std::string_view name, int threads = 1);

/// The default backend: the environment variable SAMEBITS_BACKEND if set, else the widest
/// supported one. Throws as find_executor does.
executor default_executor(int threads = 1);

}  // namespace samebits
