// A plan as backends read it, and what a backend brings to the operations over one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/overlap.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/plan.hpp"
#include "numerics/tensor_list/plan_ops.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::backends {

struct plan_data {
  std::vector<list_tensor> tensors;
  std::vector<numerics::plan_row> rows;
  std::vector<std::uint32_t> row_of_chunk;
  std::uint64_t elements = 0;
  memory_space space = memory_space::host;
  int device = -1;               ///< of tensors in device memory, and of their tables there
  std::uint32_t formats = 0;     ///< bit i: some tensor has the format number i
  std::vector<extent> by_begin;  ///< of the tensors with elements, sorted by begins_before
  std::uintptr_t end = 0;        ///< behind the last byte of all
  /// Of tensors in device memory: copies of rows and, behind them, row_of_chunk there.
  std::shared_ptr<const std::byte> on_device = {};

  [[nodiscard]] std::size_t rows_bytes() const { return rows.size() * sizeof(rows[0]); }
  /// The tables in the memory of the tensors.
  [[nodiscard]] numerics::plan_tables tables() const {
    if (space == memory_space::host) {
      return {rows.data(), row_of_chunk.data(), rows.size(), row_of_chunk.size()};
    }
    const std::byte* const first = on_device.get();
    return {reinterpret_cast<const numerics::plan_row*>(first),
            reinterpret_cast<const std::uint32_t*>(first + rows_bytes()), rows.size(),
            row_of_chunk.size()};
  }
};

/// "tensors[3] 'layer.weight'", or without a name "tensors[3]".
std::string tensor_text(const list_tensor& tensor, std::size_t position, const char* plan);

/// What tensor_list's constructor does, but for copies of the tables in device memory; messages
/// call the list `which`.
/// plan_data::device is left open.
std::shared_ptr<plan_data> describe_plan(std::vector<list_tensor> tensors, const char* which);
/// The device of a described list in device memory; no_device where every device reaches it. Throws
/// invalid_argument for memory that no device reaches and for tensors on several devices.
int device_of(const plan_data& plan, const char* which);
/// What tensor_list's constructor does.
std::shared_ptr<const plan_data> make_plan(std::vector<list_tensor> tensors, const char* which);

struct axpby_call {
  std::uint32_t a;  ///< binary32 bits
  numerics::plan_tables x;
  std::uint32_t b;  ///< binary32 bits
  numerics::plan_tables y;
  numerics::plan_tables out;
};

struct accumulate_call {
  numerics::plan_tables acc;
  numerics::plan_tables gradients;
  const float* scales;  ///< by tensor, or null

  /// As binary32 bits.
  [[nodiscard]] std::uint32_t scale_of(std::uint32_t tensor) const {
    return scales == nullptr ? numerics::binary32::one
                             : std::bit_cast<std::uint32_t>(scales[tensor]);
  }
};

/// What cast() asks of a device backend. Tensor i draws from stream random.stream + i.
struct cast_call {
  const plan_data& from;
  const plan_data& to;
  cast_rule rule;
  random_stream random;
};

/// Plan operations of a host backend, on chunks [begin, end) of plans that were checked; called
/// from several threads at once, and right whatever the control register says. Chunks are numbered
/// as in numerics/tensor_list/plan.hpp; plans of one call have the same.
struct plan_kernels {
  /// Writes tallies[chunk] for each chunk, and adds to exponents[exponent_buckets] where they are
  /// counted.
  void (*inspect)(const numerics::plan_tables& plan, element_range chunks, inspect_counts counts,
                  numerics::chunk_tally* tallies, std::uint64_t* exponents);
  /// Scales in place; writes tallies[chunk].
  void (*scale)(const numerics::plan_tables& plan, element_range chunks, std::uint32_t factor,
                numerics::scale_tally* tallies);
  void (*axpby)(const axpby_call& call, element_range chunks);
  void (*accumulate)(const accumulate_call& call, element_range chunks);
};

/// Plan operations of a device backend, on plans that were checked, in device memory. They enqueue
/// on a stream (cudaStream_t); those that return a report wait for it.
struct device_plan_kernels {
  inspect_report (*inspect)(const plan_data& plan, inspect_counts counts, void* stream);
  /// Without a report where none is asked for, and then without waiting.
  void (*scale)(const plan_data& plan, float factor, unscale_report* report, void* stream);
  void (*axpby)(const axpby_call& call, void* stream);
  void (*accumulate)(const accumulate_call& call, void* stream);
  /// Every rule, between any formats of plans.
  void (*cast)(const cast_call& call, void* stream);
};

}  // namespace samebits::backends
