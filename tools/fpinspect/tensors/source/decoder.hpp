// Decodes codes of one format to exact values, fast.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// Codes of up to 16 bits use a table. fp32, tf32 and fp64 are read as native float and double. NaN
/// payloads are unspecified.
class decoder {
 public:
  explicit decoder(samebits::format_id format);

  /// Decodes out.size() codes of any alignment.
  void decode(const std::byte* codes, std::span<double> out) const;

 private:
  samebits::format_id format_;
  std::vector<double> table_;
};

}  // namespace fpinspect
