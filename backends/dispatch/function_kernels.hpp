// Functions on host backends: the kernels that a backend brings, and the operations by its kernels.
#pragma once

#include <cstdint>
#include <span>

#include "backends/dispatch/calls/attention.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/fused.hpp"
#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/dispatch/calls/sums.hpp"

namespace samebits::backends {

/// Several threads call the kernels at once.
struct function_kernels {
  function_codes functions;  ///< of all rules but `exact`
  function_codes exact;
  fused_codes fused;
  row_kernel row;
  std::int64_t row_elements;  ///< a thread with rows of fewer elements costs more than it saves
  const sum_kernels& sums;
  const attention_kernels& attention;
  kernel_scope in_scope;
};

// Operations (run_with in backends/threads/on_threads.hpp). kernels(): those of the backend.
void evaluate_on_threads(const function_kernels& kernels(), const evaluate_call& call,
                         const executor& where);
void fused_on_threads(const function_kernels& kernels(), const fused_call& call,
                      const executor& where);
void rows_on_threads(const function_kernels& kernels(), const row_call& call,
                     const executor& where);
/// Heads that the kernels do not compute are computed by the reference kernels.
void attention_on_threads(const function_kernels& kernels(), const attention_call& call,
                          const executor& where);

// All of them by the kernels of sums.
void reduce_axes_on_threads(const function_kernels& by, const axis_call& call,
                            const executor& where);
void norm_parameters_on_threads(const function_kernels& by, const norm_parameters_call& call,
                                const executor& where);
void embedding_gradient_on_threads(const function_kernels& by, const embedding_call& call,
                                   const executor& where);
/// norms[i] = the norm of tensors[i], binary32 bits. Tensors lie in host memory in fp32, fp16 or
/// bf16.
void foreach_norm_on_threads(const function_kernels& by, std::span<const const_matrix_view> tensors,
                             std::uint32_t* norms, const executor& where);

}  // namespace samebits::backends
