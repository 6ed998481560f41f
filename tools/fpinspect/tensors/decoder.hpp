// Codes of one format back to exact values, fast.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// From a table for codes of up to 16 bits; fp32, tf32 and fp64 are what the machine itself reads.
/// NaNs keep no payload that one could rely on.
class decoder {
 public:
  explicit decoder(samebits::format_id format);

  /// codes: out.size() of them, of any alignment.
  void decode(const std::byte* codes, std::span<double> out) const;

 private:
  samebits::format_id format_;
  std::vector<double> table_;
};

}  // namespace fpinspect
