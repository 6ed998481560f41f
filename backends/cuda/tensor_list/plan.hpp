// Plan operations on CUDA: what they enqueue, and what they leave in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/dispatch/plan.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/plan.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::cuda {

/// Which text computes sums, products and conversions.
enum class steps : std::uint8_t { definition, hardware };

/// What inspect() leaves in device memory, of all tensors together.
struct inspection {
  tensor_statistics total;
  std::int64_t first_bad;
};

struct piece_figures;

/// Results and workspace of one inspection in device memory; of one allocation.
struct inspection_memory {
  numerics::chunk_tally* tallies;  ///< [chunks]
  piece_figures* pieces;           ///< [piece_places()]: of large tensors
  std::uint32_t* arrived;          ///< [tensors]: pieces that are there
  tensor_statistics* tensors;      ///< [tensors]
  inspection* all;                 ///< [1]
  std::uint64_t* exponents;        ///< [exponent_buckets]
};
std::size_t inspection_bytes(const numerics::plan_tables& plan);
inspection_memory inspection_in(std::byte* memory, const numerics::plan_tables& plan);

/// Whether all tensors are regular, dense and aligned to 16 bytes, and then of which format.
enum class plan_shape : std::uint8_t { any, mixed, fp32, fp16, bf16 };
plan_shape shape_of(std::span<const numerics::plan_row> rows);

/// Enqueues the pass over the elements and the sums of each tensor, two launches where all are
/// regular; `plan` and `memory` are device memory. memory.all is left alone, and memory.exponents
/// unless they are counted.
void enqueue_tensor_statistics(const numerics::plan_tables& plan, plan_shape shape,
                               inspect_counts counts, const inspection_memory& memory, steps by,
                               void* stream);
/// The pass over the elements alone, one launch where all are regular: memory.tallies.
void enqueue_chunk_tallies(const numerics::plan_tables& plan, plan_shape shape,
                           inspect_counts counts, const inspection_memory& memory, steps by,
                           void* stream);
/// And what all tensors have together.
void enqueue_total(const numerics::plan_tables& plan, const inspection_memory& memory, steps by,
                   void* stream);

/// What tensors are multiplied by, and whether.
struct scale_factor {
  std::uint32_t value = 0;                 ///< binary32 bits
  const std::uint32_t* pointer = nullptr;  ///< device memory; where not null, instead of value
  const bool* only_if = nullptr;           ///< device memory; where false there: nothing is done
};

/// Scales in place. `report`, in device memory or null, must be {0, 0, 0, 0, -1}; its count is left
/// alone.
void enqueue_scale(const numerics::plan_tables& plan, const scale_factor& factor,
                   unscale_report* report, steps by, void* stream);
void enqueue_axpby(const backends::axpby_call& call, steps by, void* stream);
void enqueue_cast(const backends::cast_call& call, steps by, void* stream);
void enqueue_accumulate(const backends::accumulate_call& call, steps by, void* stream);

extern const backends::device_plan_kernels emulated_plans;
extern const backends::device_plan_kernels native_plans;

}  // namespace samebits::cuda
