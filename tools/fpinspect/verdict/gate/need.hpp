// What a format must keep: --need 30dB, --need 'underflow<1%'.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fpinspect {

/// The least that a choice must keep of every tensor.
struct need {
  double db = 30.0;                ///< the SQNR must be at least this
  double underflow_percent = 1.0;  ///< of the non-zero elements, fewer than this may become 0

  /// Whether `lost` of `nonzero` elements are few enough. No loss always is.
  [[nodiscard]] bool allows(std::uint64_t lost, std::uint64_t nonzero) const;
};

/// The default, changed by each text in turn.
/// @throws usage_error  if a text is neither NUMBERdB nor underflow<NUMBER%
need need_argument(const std::vector<std::string>& texts);

}  // namespace fpinspect
