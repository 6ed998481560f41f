// The kernels of the reference backend for functions, which apply the definition.
#pragma once

#include "backends/dispatch/function_kernels.hpp"

namespace samebits::backends {

void reference_function_codes(const evaluate_call& call, function_chunk& chunk, int count);
void reference_exact_codes(const evaluate_call& call, function_chunk& chunk, int count);
void reference_fused_codes(const fused_call& call, fused_chunk& chunk, int count);
void reference_row(const row_task& task);
extern const sum_kernels reference_sums;
extern const attention_kernels reference_attention;

}  // namespace samebits::backends
