// What a backend is: a name, what it needs, and its array functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "samebits/convert.hpp"

namespace samebits::backends {

/// Elements [begin, end) of a view in row-major order of (row, column).
struct element_range {
  std::int64_t begin;
  std::int64_t end;
};

/// Arguments are checked before a backend sees them; pitch is resolved.
struct convert_call {
  const_matrix_view in;
  matrix_view out;
  cast_rule rule;
  random_stream random;
  std::uint64_t pitch;
};

struct backend {
  std::string_view name;
  std::string_view description;
  bool (*supported)();
  void (*convert)(const convert_call& call, element_range range);
};

/// The compiled backends, the plainest first.
std::span<const backend* const> compiled();

/// The backend an executor names; throws as find_executor does.
const backend& resolve(const executor& where);

}  // namespace samebits::backends
