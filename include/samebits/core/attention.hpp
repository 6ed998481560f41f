// Attention: names for the GPU kernels whose results samebits/attention.hpp computes.
#pragma once

#include <cstdint>

#include "samebits/core/table.hpp"

namespace samebits {

/// The kernels that PyTorch 2.11 calls for scaled_dot_product_attention() on an H100 or H200.
enum class attention_kernel : std::uint8_t {
  flash,      ///< FlashAttention 2 (SDPBackend.FLASH_ATTENTION); its backward deterministic
  cudnn,      ///< cuDNN (SDPBackend.CUDNN_ATTENTION), PyTorch's default there
  math,       ///< products and a softmax (SDPBackend.MATH)
  efficient,  ///< memory-efficient attention (SDPBackend.EFFICIENT_ATTENTION): has no rule
  flash_3,    ///< FlashAttention 3: has no rule
};
template <>
inline constexpr auto table_of<attention_kernel> =
    enum_table<attention_kernel::flash_3>({"flash", "cudnn", "math", "efficient", "flash_3"});

}  // namespace samebits
