// The passes of statistics_pass: threads measure chunks, and the chunks' sums are combined in order.
#pragma once

#include <cstdint>
#include <memory>

#include "samebits/cast_statistics.hpp"

namespace samebits::backends {

/// The state of a statistics_pass. Arguments have been checked.
class element_passes {
 public:
  static std::unique_ptr<element_passes> make(const statistics_request& request,
                                              const matrix_shape& shape, const executor& where);
  virtual ~element_passes() = default;

  virtual void add(const const_matrix_view& elements) = 0;
  /// Ends a pass; returns whether another one is needed.
  virtual bool next_pass() = 0;
  [[nodiscard]] virtual cast_statistics result() const = 0;

  format_id format = format_id::fp32;
  std::int64_t missing = 0;  ///< elements that this pass has not been given
  bool done = false;
};

}  // namespace samebits::backends
