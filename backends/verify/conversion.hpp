// Conversions as compared calls.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/verify/call.hpp"
#include "backends/verify/inputs.hpp"

namespace samebits::backends::verification {

/// A rectangular block of a matrix.
struct block {
  std::int64_t row;
  std::int64_t col;
  std::int64_t rows;
  std::int64_t cols;
};

/// One conversion of the input.
struct conversion {
  format_id to;
  cast_rule rule;
  placement in;
  placement out;
  random_stream random = {};
  /// If given, backends convert a second time, split into these blocks.
  std::vector<block> blocks = {};
};

checked_call call_of(const conversion& c, const code_buffer& input);

}  // namespace samebits::backends::verification
