// Matrix products as cases: shapes, strides, formats, accumulations, scales and C.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/core/problem.hpp"
#include "samebits/matmul.hpp"

namespace samebits::support {

struct matmul_sizes {
  int max_rows;
  int max_cols;
  int max_depth;
};

/// The kinds of accumulation that occur.
enum class random_kinds : std::uint8_t { all, tensor_cores };

/// Scales of an operand.
struct scales_of_case {
  bool given = false;
  tile_shape tile = {};
  format_id format = format_id::fp32;
  array_layout layout = {};
  int mix = 0;
};

struct matmul_case {
  format_id a_format = format_id::fp32, b_format = format_id::fp32, d_format = format_id::fp32;
  format_id c_format = format_id::fp32;
  accumulator sum{accumulator_kind::exact};
  int products = 0;  ///< of an instruction of a tensor core
  array_layout a = {}, b = {}, d = {}, c = {};
  scales_of_case a_scales = {}, b_scales = {};
  std::optional<samebits::scale_order> scale_order = {};
  bool has_c = false;
  addend c_enters = addend::last;
  int mix = 0, c_mix = 0;  ///< what the elements are
  int threads = 1;
  std::uint64_t content = 0;
};
void describe(matmul_case& c, case_fields& fields);

// The buffers of a case.
namespace matmul_buffers {
inline constexpr std::size_t a = 0, b = 1, a_scales = 2, b_scales = 3, c = 4, d = 5;
}

/// matmul() of any accumulation, or of those of tensor cores.
array_operation matmul_operation(const matmul_sizes& sizes, random_kinds kinds);

}  // namespace samebits::support
