// Tensor list: its description as backends read it, and the checked calls that a backend receives.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/dispatch/calls/described_rows.hpp"
#include "backends/dispatch/overlap.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "numerics/tensor_list/list_ops.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::backends {

/// A checked tensor list: its tensors, its tables and what later checks need.
struct list_data : described_rows<numerics::list_row> {
  std::vector<list_tensor> tensors;
  std::uint32_t formats = 0;     ///< bit i: some tensor has format number i
  std::vector<extent> by_begin;  ///< extents of the non-empty tensors, sorted by begins_before
  std::uintptr_t end = 0;        ///< end of the last byte of all tensors
};

/// The tensor's name in messages: "tensors[3] 'layer.weight'", or "tensors[3]" if it has no name,
/// in the list "tensors".
std::string tensor_text(const list_tensor& tensor, std::size_t position, const char* list);

/// Does the work of tensor_list's constructor, without copying the tables to device memory.
/// Messages call the list `which`. list_data::device is not set.
std::shared_ptr<list_data> describe_list(std::vector<list_tensor> tensors, const char* which);
/// The device of a described list in device memory; no_device if every device can access it.
/// @throws invalid_argument  if no device can access some memory, or if tensors are on several
///   devices
int device_of(const list_data& list, const char* which);
/// Does the work of tensor_list's constructor.
std::shared_ptr<const list_data> make_tensor_list(std::vector<list_tensor> tensors,
                                                  const char* which);

/// Statistics of a list. run() waits and writes the report.
struct inspect_call {
  const list_data& list;
  inspect_counts counts;
  inspect_report* report;
};

/// Scaling in place.
struct scale_call {
  const list_data& list;
  float factor;
  unscale_report* report;  ///< null, or the report is written; then run() waits
};

/// out = a * x + b * y; `out` may be x or y.
struct axpby_call {
  std::uint32_t a;  ///< binary32 bits
  numerics::tensor_tables x;
  std::uint32_t b;  ///< binary32 bits
  numerics::tensor_tables y;
  numerics::tensor_tables out;
  std::uint64_t elements;  ///< of each list
};

/// acc += gradients * scale.
struct accumulate_call {
  numerics::tensor_tables acc;
  numerics::tensor_tables gradients;
  const float* scales;     ///< one scale per tensor, or null
  std::uint64_t elements;  ///< of each list

  /// The scale of a tensor as binary32 bits.
  [[nodiscard]] std::uint32_t scale_of(std::uint32_t tensor) const {
    return scales == nullptr ? numerics::binary32::one
                             : std::bit_cast<std::uint32_t>(scales[tensor]);
  }
};

/// Conversion of each tensor. Tensor i uses the random stream random.stream + i.
struct cast_call {
  const list_data& from;
  const list_data& to;
  cast_rule rule;
  random_stream random;
};

/// The parts of a host backend's operations on tensor lists, on chunks [begin, end) of checked
/// lists (backends/threads/tensor_list.hpp). Several threads call them at once. Results must be
/// right under any state of the control register. Chunk numbers are those of
/// numerics/tensor_list/list.hpp and are equal for all lists of one call.
struct list_kernels {
  /// Writes partial_statistics[chunk] for each chunk. If exponents are counted, adds to
  /// exponents[exponent_buckets].
  void (*inspect)(const numerics::tensor_tables& list, element_range chunks, inspect_counts counts,
                  numerics::chunk_statistics* partial_statistics, std::uint64_t* exponents);
  /// Scales in place and writes partial_statistics[chunk].
  void (*scale)(const numerics::tensor_tables& list, element_range chunks, std::uint32_t factor,
                numerics::scale_statistics* partial_statistics);
  void (*axpby)(const axpby_call& call, element_range chunks);
  void (*accumulate)(const accumulate_call& call, element_range chunks);
};

}  // namespace samebits::backends
