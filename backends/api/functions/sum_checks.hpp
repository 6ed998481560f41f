// What functions by PyTorch's rules check in common.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/calls/sums.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/function.hpp"

namespace samebits::backends {

namespace torch = numerics::torch_2_11;
namespace ptx = numerics::ptx;

/// Binary32 bits, or codes.
using values = std::vector<std::uint32_t>;

/// Requires a format of numbers, and torch_2_11 or the other rule that has the function. `what`:
/// the function in messages.
void check_torch_rule(function_rule rule, const std::string& what, format_id format,
                      function_rule other = function_rule::torch_2_11);

/// Checks a view that the call reads: shape, format and memory are those expected, and it shares no
/// element with `out`.
void check_read(const const_matrix_view& v, const char* which, std::int64_t rows, std::int64_t cols,
                format_id format, const matrix_view& out, const char* out_name);

/// Requires numbers from 0 to count - 1, or the ignored one, which messages call ignore_index.
void check_indices(std::span<const std::int64_t> indices, const char* which, std::int64_t count,
                   std::optional<std::int64_t> ignored = {});

/// The kernels of the executor's backend. `what` stands in messages: "reductions over axes".
const sum_kernels& sums_of(const executor& where, memory_space space, const char* what);

}  // namespace samebits::backends
