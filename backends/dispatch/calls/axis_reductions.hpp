// Reductions over axes: the checked calls that a backend receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "backends/dispatch/backend.hpp"
#include "numerics/hardware/torch_operators/axis_plan.hpp"
#include "samebits/axis_reductions.hpp"

namespace samebits::backends {

/// A checked call with at least one element.
struct axis_call {
  numerics::torch_2_11::axis_plan plan;
  axis_reduction of;
  std::int64_t offset;  ///< 0..7 elements from a 16-byte boundary to the tensor
  const std::byte* in;
  matrix_view out;  ///< with as many elements as the plan has outputs
};

/// sums[i] += value of codes[i], or by fma its square, for i < n. `sums` are binary32 bits; a NaN may
/// have any code.
using axis_kernel = void (*)(std::uint32_t* sums, const std::byte* codes, std::int64_t n,
                             format_id format, bool squares);

/// Calls work() in the state of the processor that an axis_kernel needs.
using axis_scope = void (*)(const std::function<void()>& work);

}  // namespace samebits::backends
