// Functions of rows: the checked calls that a backend receives.
#pragma once

#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "samebits/row_functions.hpp"

namespace samebits::backends {

enum class row_function : std::uint8_t {
  softmax,
  log_softmax,
  softmax_gradient,
  log_softmax_gradient,
  layer_norm,
  layer_norm_gradient,
};

/// A checked call. Views that the function lacks have no data.
struct row_call {
  row_function of;
  function_rule rule = function_rule::torch_2_11;
  std::uint32_t epsilon = 0;    ///< binary32
  std::int64_t offset = 0;      ///< 0..7 elements from a 16-byte boundary to the added tensor
  int num_warps = 4;            ///< of triton_3_6
  int elements_per_thread = 4;  ///< of triton_3_6
  const_matrix_view grad = {};
  const_matrix_view in = {};  ///< of softmax's gradients: softmax's result
  const_matrix_view weight = {};
  const_matrix_view bias = {};
  const_matrix_view mean = {};  ///< of layer_norm: written, if there is data
  const_matrix_view rstd = {};  ///< of layer_norm: written, if there is data
  matrix_view out = {};
};

}  // namespace samebits::backends
