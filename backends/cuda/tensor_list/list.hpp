// Operations over lists of tensors on CUDA (inspect, scale, axpby, accumulate, cast): the launches,
// and the layout of their results in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::cuda {

/// The result of inspect() for all tensors together, in device memory.
struct inspection {
  tensor_statistics total;
  std::int64_t first_bad;  ///< first tensor with NaN or Inf, or -1
};

/// Statistics that are not finished (list_total.cuh).
struct combined_statistics;

/// Results and workspace of one inspection: pointers into one allocation of device memory.
struct inspection_memory {
  numerics::chunk_statistics* partial_statistics;  ///< [chunks]: statistics of each chunk
  combined_statistics* spans;  ///< [span_count()]: statistics of 1024 chunks of a large tensor
  std::uint32_t* arrived;      ///< [tensors]: finished spans of each tensor
  tensor_statistics* tensors;  ///< [tensors]: statistics of each tensor
  inspection* all;             ///< [1]: statistics of the list
  std::uint64_t* exponents;    ///< [exponent_buckets]: histogram
};
/// The next memory of `layout`; null pointers if it has no allocation.
inspection_memory inspection_in(memory_layout& layout, const numerics::tensor_tables& list);

/// Layout and format that the tensors of a list share: `any` unless all are dense and aligned to 16
/// bytes; then their format, or `mixed` for several formats.
enum class list_layout : std::uint8_t { any, mixed, fp32, fp16, bf16 };
list_layout shape_of(std::span<const numerics::list_row> rows);

/// Enqueues the statistics of each tensor: a pass over the elements, then the statistics of chunks
/// combined. Two launches where all tensors are dense and aligned to 16 bytes. The tables of `list`
/// are in device memory. Does not write memory.all; writes memory.exponents only if the histogram
/// is asked for.
void enqueue_tensor_statistics(const numerics::tensor_tables& list, list_layout shape,
                               inspect_counts counts, const inspection_memory& memory,
                               arithmetic by, void* stream);
/// Enqueues the pass over the elements, which writes memory.partial_statistics. One launch where
/// all tensors are dense and aligned to 16 bytes.
void enqueue_chunk_statistics(const numerics::tensor_tables& list, list_layout shape,
                              inspect_counts counts, const inspection_memory& memory, arithmetic by,
                              void* stream);
/// Enqueues the statistics of all tensors together: memory.all from memory.tensors.
void enqueue_total(const numerics::tensor_tables& list, const inspection_memory& memory,
                   arithmetic by, void* stream);

/// The factor of a scale operation, and the condition under which tensors are scaled.
struct scale_factor {
  std::uint32_t value = 0;                 ///< binary32 bits
  const std::uint32_t* pointer = nullptr;  ///< device memory; used instead of value unless null
  const bool* only_if = nullptr;           ///< device memory or null; if false, nothing is done
};

/// Enqueues scaling in place. `report`: null, or device memory that starts as {0, 0, 0, 0, -1}.
/// Does not write report->elements.
void enqueue_scale(const numerics::tensor_tables& list, const scale_factor& factor,
                   unscale_report* report, arithmetic by, void* stream);
/// Enqueues out = a * x + b * y.
void enqueue_axpby(const backends::axpby_call& call, arithmetic by, void* stream);
/// Enqueues the conversion of each tensor of one list to the tensor at the same position of
/// another.
void enqueue_cast(const backends::cast_call& call, arithmetic by, void* stream);
/// Enqueues acc = acc + scale * gradient.
void enqueue_accumulate(const backends::accumulate_call& call, arithmetic by, void* stream);

/// Enqueues the statistics of a list, waits, and writes the report.
void run_inspect(const backends::inspect_call& call, arithmetic by, void* stream);
/// Enqueues scaling in place. If a report is wanted, waits and writes it.
void run_scale(const backends::scale_call& call, arithmetic by, void* stream);

}  // namespace samebits::cuda
