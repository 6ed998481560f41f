// Autocast: a table of the precision in which each operation runs when training in FP16, BF16 or
// FP8.
//
//   using namespace samebits;
//   static_assert(autocast_rule_of("matmul") == autocast_rule::low_precision);
//   formats_of("matmul", training_precision::mixed_bf16, format_id::fp32)->operands;   // bf16
//   formats_of("linear", training_precision::mixed_fp8, format_id::bf16)->gradients;   // e5m2
//   apex_level_of(opt_level::O2).master_weights;                                 // yes
//
// Operation names are ATen's. Sources: PyTorch aten/src/ATen/autocast_mode.h and .cpp (CUDA lists);
// Apex apex/amp/lists/*.py and apex/amp/frontend.py at e13873de; Transformer Engine user guide,
// "FP8 Current Scaling" and Format.HYBRID; arXiv 2209.05433 (FP8 formats for deep learning).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

/// What autocast does with the floating-point operands of an operation.
enum class autocast_rule : std::uint8_t {
  low_precision,  ///< cast to the low-precision format; result in that format
  fp32,           ///< cast to FP32
  fp32_result,    ///< not cast; computed and returned in FP32 unless the caller passes a dtype
  widest,         ///< all cast to the widest format among them
  as_given,       ///< not cast: every operation that no list names
  banned,         ///< refused: unsafe in low precision; a fused form exists
};
template <>
inline constexpr auto table_of<autocast_rule> = enum_table<autocast_rule::banned>(
    {"low_precision", "fp32", "fp32_result", "widest", "as_given", "banned"});

namespace detail {

// Sorted lists. No operation is in two lists of one library.

inline constexpr std::string_view torch_low_precision[] = {
    "_convolution",
    "_scaled_dot_product_flash_attention",
    "_thnn_fused_gru_cell",
    "_thnn_fused_lstm_cell",
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "einsum",
    "gru_cell",
    "linalg_multi_dot",
    "linalg_vecdot",
    "linear",
    "lstm_cell",
    "matmul",
    "mm",
    "mv",
    "prelu",
    "rnn_relu_cell",
    "rnn_tanh_cell",
    "scaled_dot_product_attention",
};

inline constexpr std::string_view torch_fp32[] = {
    "_upsample_bicubic2d_aa",
    "_upsample_bilinear2d_aa",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "acos",
    "asin",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "dist",
    "erfinv",
    "exp",
    "expm1",
    "frobenius_norm",
    "group_norm",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "logsumexp",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "native_layer_norm",
    "nll_loss",
    "nll_loss2d",
    "nuclear_norm",
    "pdist",
    "poisson_nll_loss",
    "pow",
    "reciprocal",
    "renorm",
    "rsqrt",
    "sinh",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softplus",
    "tan",
    "triplet_margin_loss",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_trilinear3d",
};

// PyTorch gives "norm" its dtype by another mechanism (fp32_append_dtype), with the same outcome.
inline constexpr std::string_view torch_fp32_result[] = {
    "cumprod", "cumsum", "linalg_matrix_norm", "linalg_vector_norm", "log_softmax", "norm", "prod",
    "softmax", "sum",
};

inline constexpr std::string_view torch_widest[] = {
    "addcdiv",      "addcmul",   "atan2",       "bilinear",  "cross", "dot",
    "grid_sampler", "index_put", "scatter_add", "tensordot", "vdot",
};

inline constexpr std::string_view apex_low_precision[] = {
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "linear",
    "matmul",
    "mm",
    "mv",
    "prelu",
};

inline constexpr std::string_view apex_fp32[] = {
    "acos",
    "asin",
    "binary_cross_entropy_with_logits",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "cumprod",
    "cumsum",
    "dist",
    "erfinv",
    "exp",
    "expm1",
    "gelu",
    "grid_sample",
    "group_norm",
    "hinge_embedding_loss",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "local_response_norm",
    "log",
    "log10",
    "log2",
    "log_softmax",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "norm",
    "normalize",
    "poisson_nll_loss",
    "pow",
    "prod",
    "reciprocal",
    "renorm",
    "rsqrt",
    "sinh",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "std",
    "sum",
    "tan",
    "triplet_margin_loss",
    "var",
};

inline constexpr std::string_view apex_widest[] = {
    "add", "addcdiv", "addcmul", "atan2", "bilinear", "cat", "cross", "div", "dot",
    "eq",  "equal",   "ge",      "gt",    "le",       "lt",  "mul",   "ne",  "stack",
};

template <std::size_t Count>
constexpr bool lists(const std::string_view (&list)[Count], std::string_view operation) {
  for (const std::string_view name : list) {
    if (name == operation) return true;
  }
  return false;
}

}  // namespace detail

/// Returns PyTorch's rule on CUDA, the same for FP16 and BF16. Operands in fp64 and integers are
/// never cast.
///
/// @param operation  ATen's name without the overload: "pow" for pow.Tensor_Scalar
constexpr autocast_rule autocast_rule_of(std::string_view operation) {
  if (detail::lists(detail::torch_low_precision, operation)) return autocast_rule::low_precision;
  if (detail::lists(detail::torch_fp32, operation)) return autocast_rule::fp32;
  if (detail::lists(detail::torch_fp32_result, operation)) return autocast_rule::fp32_result;
  if (detail::lists(detail::torch_widest, operation)) return autocast_rule::widest;
  return operation == "binary_cross_entropy" ? autocast_rule::banned : autocast_rule::as_given;
}

/// Returns Apex's rule at O1, for functions of torch and torch.nn.functional (CUDA 9.1 or later).
constexpr autocast_rule apex_rule_of(std::string_view operation) {
  if (detail::lists(detail::apex_low_precision, operation)) return autocast_rule::low_precision;
  if (detail::lists(detail::apex_fp32, operation)) return autocast_rule::fp32;
  if (detail::lists(detail::apex_widest, operation)) return autocast_rule::widest;
  return operation == "binary_cross_entropy" ? autocast_rule::banned : autocast_rule::as_given;
}

enum class training_precision : std::uint8_t { mixed_fp16, mixed_bf16, mixed_fp8 };
template <>
inline constexpr auto table_of<training_precision> =
    enum_table<training_precision::mixed_fp8>({"mixed_fp16", "mixed_bf16", "mixed_fp8"});

/// Formats of one operation. Sums are in FP32.
struct operation_formats {
  format_id operands;   ///< operands are cast to this format
  format_id gradients;  ///< format of the incoming gradient in the backward products
  format_id result;     ///< format of the result

  friend constexpr bool operator==(const operation_formats&, const operation_formats&) = default;
};

/// Returns the formats of an operation by PyTorch's rule.
///
/// mixed_fp8 is mixed_bf16 with one exception, `linear` (Transformer Engine's HYBRID). The forward
/// product of `linear` is in e4m3, its backward products use the gradient in e5m2, and its result
/// is bf16. Each FP8 operand has its own scale. Attention and all other products stay bf16.
///
/// @param operation  ATen's name
/// @param precision  the training precision
/// @param widest  the widest format of the operands: fp64, fp32, fp16 or bf16
/// @returns the formats; nothing for a banned operation
constexpr std::optional<operation_formats> formats_of(std::string_view operation,
                                                      training_precision precision,
                                                      format_id widest) {
  const autocast_rule rule = autocast_rule_of(operation);
  if (rule == autocast_rule::banned) return std::nullopt;
  if (widest == format_id::fp64) return operation_formats{widest, widest, widest};
  const format_id low =
      precision == training_precision::mixed_fp16 ? format_id::fp16 : format_id::bf16;
  switch (rule) {
    case autocast_rule::low_precision:
      if (precision == training_precision::mixed_fp8 && operation == "linear") {
        return operation_formats{format_id::e4m3, format_id::e5m2, low};
      }
      return operation_formats{low, low, low};
    case autocast_rule::fp32:
      return operation_formats{format_id::fp32, format_id::fp32, format_id::fp32};
    case autocast_rule::fp32_result:
      return operation_formats{widest, format_id::fp32, format_id::fp32};
    case autocast_rule::widest:
    case autocast_rule::as_given:
    case autocast_rule::banned: break;
  }
  return operation_formats{widest, widest, widest};
}

/// Apex's presets: O0 pure FP32; O1 casts around functions; O2 an FP16 model with FP32 batch norm
/// and master weights; O3 pure FP16.
enum class opt_level : std::uint8_t { O0, O1, O2, O3 };

/// A setting of Apex: yes, no, or unset (the model decides).
enum class apex_choice : std::uint8_t { no, yes, unset };

/// Settings of one of Apex's presets.
struct apex_level {
  /// Format of the parameters and of incoming tensors. Empty: unchanged.
  std::optional<format_id> model = std::nullopt;
  bool patch_functions = false;                      ///< apex_rule_of() around every function
  apex_choice batch_norm_fp32 = apex_choice::unset;  ///< batch norm keeps FP32 parameters
  apex_choice master_weights = apex_choice::unset;   ///< the optimizer updates FP32 copies
  bool dynamic_loss_scale = false;                   ///< policy apex_amp; else a constant 1
};

/// Returns the settings of a preset.
constexpr apex_level apex_level_of(opt_level level) {
  switch (level) {
    case opt_level::O0: return {format_id::fp32, false, apex_choice::unset, apex_choice::no, false};
    case opt_level::O1: return {std::nullopt, true, apex_choice::unset, apex_choice::unset, true};
    case opt_level::O2: return {format_id::fp16, false, apex_choice::yes, apex_choice::yes, true};
    case opt_level::O3: break;
  }
  return {format_id::fp16, false, apex_choice::no, apex_choice::no, false};
}

}  // namespace samebits
